package multipart_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/multipart"
)

// The check value of CRC-64/NVME: the checksum of the digits 1 to 9, as the specification of the algorithm gives it.
const checkValue = multipart.CRC(0xAE8B14860A799888)

func TestCRC_IsTheOneS3CallsCRC64NVME(t *testing.T) {
	require.Equal(t, checkValue, multipart.Checksum([]byte("123456789")))
	require.Equal(t, checkValue, multipart.Checksum([]byte("1234")).Update([]byte("56789")))
	require.Equal(t, multipart.CRC(0), multipart.Checksum(nil))
	require.Equal(t, "rosUhgp5mIg=", checkValue.String())
}

func TestCRC_AppendIsTheChecksumOfTheConcatenation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "a")
		b := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "b")
		got := crcOf(a).Append(crcOf(b), int64(len(b)))
		if want := crcOf(append(a[:len(a):len(a)], b...)); got != want {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestParseCRC(t *testing.T) {
	c, err := multipart.ParseCRC("rosUhgp5mIg=")
	require.NoError(t, err)
	require.Equal(t, checkValue, c)
	for _, bad := range []string{"", "rosUhgp5mIg", "rosUhgp5mIg=\n", "AAAA", "rosUhgp5mIgAAAA=", "!osUhgp5mIg="} {
		_, err := multipart.ParseCRC(bad)
		require.Error(t, err, "%q", bad)
	}
}
