// Package datagen is the source of the end-to-end job: rows that prove themselves.
//
// A row is a pure function of (seed, field, row number). A random string spells its own number in
// its first 16 characters and fills the rest with digits that follow from seed and number, so
// whoever reads it can say which row it is and whether every byte is right, without a list of what
// was written. That is what Flink's datagen lacks for a proof: it has no seed, its count is not in
// the checkpoint, a sequence keeps all its remaining numbers in memory, and a 32-bit counter ends
// at 2^31 rows.
//
//	o := datagen.DefaultOptions()
//	o.NumberOfRows = 1_000_000
//	o.Fields = []datagen.Field{datagen.RandomField("line", 1024)}
//	source, err := datagen.NewSource(o, datagen.Shard{Index: 0, Count: 1})
//	...
//	generator, err := o.Generator()
//	pacer := datagen.NewPacer(o.RowsPerSecond)
//	for !source.Done() {
//		n, err := pacer.Wait(ctx, 100) // outside of the step
//		...
//		err = coordinator.Step(func() error {
//			batch := source.Next(n)
//			for i := range batch.Count {
//				row = generator.Append(row[:0], batch.Row(i))
//				... write row and a newline
//			}
//		})
//	}
//
// # The bytes of a random row
//
// All arithmetic is modulo 2^64, >> is the logical shift, ^ is exclusive or, words are written as
// 16 lower-case hexadecimal digits:
//
//	gamma   = 0x9e3779b97f4a7c15
//	mix(z)  = z = (z ^ z>>30) * 0xbf58476d1ce4e5b9; z = (z ^ z>>27) * 0x94d049bb133111eb; z ^ z>>31
//	base    = mix(seed + gamma) ^ fnv1a64(field name)
//	k1, k2  = mix(base + gamma), mix(base + 2*gamma)
//	s       = mix(row ^ k2)
//	text    = hex(mix(row + k1) ^ k2), hex(mix(s + gamma)), hex(mix(s + 2*gamma)), ... cut to length
//
// mix is a bijection, so the first word can be undone. A row of a sequence is the decimal text of
// start + row.
//
// # Shards and bounds
//
// Of n processes, process i makes the rows k*n + i. datagen.number-of-rows bounds the whole job,
// datagen.rows-per-second the rate of each process. A finished sequence ends the job; with
// number-of-rows set as well the smaller one does.
package datagen
