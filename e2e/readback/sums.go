package readback

// sums is what is left of a multiset of row numbers when only its size and the sums of two mixes
// of its members are kept, modulo 2^64. The order does not matter. Two different multisets that
// did not come about by looking for a collision agree with a probability of about 2^-128; one
// row swapped for another never agrees, because each mix is a bijection.
type sums struct {
	count, a, b uint64
}

func (s *sums) add(row int64) {
	s.count++
	s.a += mixA(uint64(row))
	s.b += mixB(uint64(row))
}

// mixA is SplitMix64's output function behind an offset that the generator does not use, mixB is
// MurmurHash3's 64-bit finaliser.
func mixA(z uint64) uint64 {
	z += 0xd1b54a32d192ed03
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func mixB(z uint64) uint64 {
	z = (z ^ z>>33) * 0xff51afd7ed558ccd
	z = (z ^ z>>33) * 0xc4ceb9fe1a85ec53
	return z ^ z>>33
}

// expectedSums returns the sums of the set's rows from low to below high.
func (e Expected) expectedSums(low, high int64) sums {
	var s sums
	n := e.step()
	for i := range e.next {
		first, limit := e.window(i, low, high)
		for row := first; row < limit; row += n {
			s.add(row)
		}
	}
	return s
}
