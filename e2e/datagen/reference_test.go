package datagen_test

import (
	"fmt"
	"hash/fnv"
	"math/big"
	"strings"
)

// reference writes row number row from the description in the package comment, with arithmetic of
// its own: big integers reduced modulo 2^64, the standard library's FNV, and fmt's hexadecimal.
func reference(seed int64, field string, length int, row int64) string {
	h := fnv.New64a()
	h.Write([]byte(field))

	gamma := word("9e3779b97f4a7c15")
	base := xor(refMix(add(fromInt(seed), gamma)), new(big.Int).SetUint64(h.Sum64()))
	k1 := refMix(add(base, gamma))
	k2 := refMix(add(base, gamma, gamma))

	var b strings.Builder
	fmt.Fprintf(&b, "%016x", xor(refMix(add(fromInt(row), k1)), k2))
	s := refMix(xor(fromInt(row), k2))
	for b.Len() < length {
		s = add(s, gamma)
		fmt.Fprintf(&b, "%016x", refMix(s))
	}
	return b.String()[:length]
}

var modulus = new(big.Int).Lsh(big.NewInt(1), 64)

func word(hex string) *big.Int {
	v, ok := new(big.Int).SetString(hex, 16)
	if !ok {
		panic(hex)
	}
	return v
}

func reduce(v *big.Int) *big.Int        { return v.Mod(v, modulus) } // Euclidean: never negative
func fromInt(v int64) *big.Int          { return reduce(big.NewInt(v)) }
func xor(a, b *big.Int) *big.Int        { return new(big.Int).Xor(a, b) }
func mul(a, b *big.Int) *big.Int        { return reduce(new(big.Int).Mul(a, b)) }
func shift(a *big.Int, n uint) *big.Int { return new(big.Int).Rsh(a, n) }

func add(vs ...*big.Int) *big.Int {
	sum := new(big.Int)
	for _, v := range vs {
		sum.Add(sum, v)
	}
	return reduce(sum)
}

func refMix(z *big.Int) *big.Int {
	z = mul(xor(z, shift(z, 30)), word("bf58476d1ce4e5b9"))
	z = mul(xor(z, shift(z, 27)), word("94d049bb133111eb"))
	return xor(z, shift(z, 31))
}
