package figures_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/e2e/testbed/internal/figures"
)

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 2097152: "2,097,152", -1234: "-1,234", -1234567: "-1,234,567"} {
		assert.Equal(t, want, figures.Grouped(n))
	}
}
