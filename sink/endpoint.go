package sink

import (
	"cmp"
	"fmt"

	"github.com/sluice-go/sluice/checkpoint"
)

// moved says that a checkpoint is restored at another endpoint than it was written at. That is allowed, since a store may get another name
// or a proxy. But what is not there then has not expired, and is neither given up nor written again.
type moved struct {
	id       checkpoint.ID
	from, to string
}

// movedFrom returns how the endpoint has changed, nil if it has not, or if the checkpoint does not tell.
func (s *Sink[T]) movedFrom(st state, id checkpoint.ID) *moved {
	if st.Endpoint == s.endpoint() || st.Endpoint == "" {
		return nil
	}
	return &moved{id, st.Endpoint, cmp.Or(s.endpoint(), "Amazon's")}
}

// notHere is the error for something that is not at the new endpoint.
func (m *moved) notHere(what string) error {
	return fmt.Errorf("%w: checkpoint %d was written at %s, and at %s %s; go back to the old endpoint, or begin anew with another %s",
		ErrOtherStore, m.id, m.from, m.to, what, KeyJobName.Name())
}
