package gate

import "time"

// window counts the answers of the last ten seconds of busy time in slots of a tenth.
type window struct {
	slots [windowSlots + 1]struct{ ok, refused int }
	last  int64         // number of the newest slot
	first time.Duration // when the first answer came
	any   bool
}

const (
	slotLength   = 100 * time.Millisecond
	windowSlots  = 100
	windowLength = windowSlots * slotLength
)

// at moves on to the slot of the given busy time.
func (w *window) at(busy time.Duration) {
	n := int64(busy / slotLength)
	for i := max(w.last+1, n-windowSlots); i <= n; i++ {
		w.slots[i%(windowSlots+1)] = struct{ ok, refused int }{}
	}
	w.last = n
}

func (w *window) add(busy time.Duration, refused bool) {
	w.at(busy)
	if !w.any {
		w.first, w.any = busy, true
	}
	s := &w.slots[w.last%(windowSlots+1)]
	if refused {
		s.refused++
	} else {
		s.ok++
	}
}

// sum returns what came in during the given time, up to ten seconds, and how much of that time there has been, in seconds. The oldest slot counts with the share of it that
// lies in that time, so that what leaves a window leaves it evenly.
func (w *window) sum(busy, span time.Duration) (ok, refused, seconds float64) {
	w.at(busy)
	span = max(min(span, busy, windowLength), time.Millisecond)
	first := (busy - span) / slotLength
	for i := int64(first); i <= w.last; i++ {
		s, share := w.slots[i%(windowSlots+1)], 1.0
		if i == int64(first) && busy-span > w.first {
			share = 1 - float64((busy-span)%slotLength)/float64(slotLength)
		}
		ok += share * float64(s.ok)
		refused += share * float64(s.refused)
	}
	return ok, refused, span.Seconds()
}
