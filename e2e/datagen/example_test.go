package datagen_test

import (
	"fmt"

	"github.com/sluice-go/sluice/e2e/datagen"
)

func ExampleGenerator() {
	g, err := datagen.NewGenerator(42, datagen.RandomField("line", 64))
	if err != nil {
		fmt.Println(err)
		return
	}
	row := g.Append(nil, 1_000_000)
	fmt.Println(len(row))
	fmt.Println(g.Number(row))

	row[40] = '!'
	_, err = g.Number(row)
	fmt.Println(err)
	// Output:
	// 64
	// 1000000 <nil>
	// corrupt row 1000000: 1 of 64 bytes differ, the first at byte 40
}

func ExampleSource() {
	o := datagen.DefaultOptions()
	o.NumberOfRows = 7
	o.Fields = []datagen.Field{datagen.SequenceField("n", 100, 1000)}
	g, err := o.Generator()
	if err != nil {
		fmt.Println(err)
		return
	}
	source, err := datagen.NewSource(o, datagen.Shard{Index: 1, Count: 2}) // the second of two processes
	if err != nil {
		fmt.Println(err)
		return
	}
	for !source.Done() {
		batch := source.Next(2)
		for i := range batch.Count {
			fmt.Printf("row %d is %s\n", batch.Row(i), g.Append(nil, batch.Row(i)))
		}
	}
	// Output:
	// row 1 is 101
	// row 3 is 103
	// row 5 is 105
}
