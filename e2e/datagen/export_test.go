package datagen

// Internals whose properties are tested from outside.
var (
	Mix     = mix
	Unmix   = unmix
	Hex8    = hex8
	Mul1Inv = uint64(mul1Inv)
	Mul2Inv = uint64(mul2Inv)
)
