package readback_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/e2e/readback"
)

// A file with one row twice and one row lost.
func ExampleCheckRows() {
	generator, err := datagen.NewGenerator(0, datagen.SequenceField("n", 100, 1000))
	if err != nil {
		fmt.Println(err)
		return
	}
	expected, err := readback.NewExpected([]int64{5}) // one shard has committed five rows
	if err != nil {
		fmt.Println(err)
		return
	}
	open := func(context.Context, int, string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("100\n101\n101\n103\n104\n")), nil
	}
	report := readback.NewReport("memory", "demo")
	report.Listed = 1
	report.RowFindings, err = readback.CheckRows(context.Background(), generator, expected, []string{"part-0"}, open, readback.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	report.Conclude(time.Second)
	_ = report.WriteText(os.Stdout)
	// Output:
	// read back memory, job demo
	//   commit records         0
	//   files                  1 of 1
	//   rows                   5 of 5
	//   characters             15
	//   bytes                  20
	//   read-back duration     1.0 s
	//   read-back throughput   0.0 MB/s
	//   passes over the files  2
	// missing rows: 1
	//   row 2
	// duplicate rows: 1
	//   row 1, 2 times: part-0
	// NOT PROVEN: 1 row missing; 1 duplicate row
}
