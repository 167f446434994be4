package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// goldenManifest is what testdata/manifest-v1.json says. That file was written by hand, its checksum by sha256sum.
func goldenManifest() Manifest {
	return Manifest{
		Version: 1, Job: "orders", Shard: "0-of-1", ID: 42, Epoch: 7,
		CreatedAt: time.Date(2026, 3, 1, 12, 30, 45, 123456789, time.UTC),
		Config:    map[string]string{"checkpoint.interval": "10 s", "sink.path": "s3://bucket/a<b>&c"},
		States: []NamedState{
			{Name: "source", State: []byte(`{"position":1234567890123}`)},
			{Name: "sink", State: []byte{0x00, 0xff, 0x80}, Refs: []string{
				"00000000000000000042-7-3.blob:0:1048576:deadbeef", "00000000000000000041-7-2.blob:4096:10:00c0ffee",
			}},
			{Name: "empty", State: []byte{}},
		},
	}
}

func readGolden(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/manifest-v1.json")
	must(t, err)
	return data
}

func TestManifest_Version1_IsReadAndWrittenAsItAlwaysWas(t *testing.T) {
	data, want := readGolden(t), goldenManifest()
	got, err := DecodeManifest(data)
	must(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("decoded\n%+v\nwant\n%+v", got, want)
	}
	encoded, err := want.Encode()
	must(t, err)
	if !bytes.Equal(encoded, data) {
		t.Errorf("encoded\n%s\nwant\n%s", encoded, data)
	}
	for _, s := range got.States {
		for _, text := range s.Refs {
			if ref, err := parseRef(text); err != nil || ref.String() != text {
				t.Errorf("ref %s: %v, %v", text, ref, err)
			}
		}
	}
}

func TestManifest_EveryFlippedBit_IsNoticed(t *testing.T) {
	data := readGolden(t)
	for i := range data {
		for bit := range 8 {
			damaged := bytes.Clone(data)
			damaged[i] ^= 1 << bit
			if _, err := DecodeManifest(damaged); err == nil {
				t.Fatalf("bit %d of byte %d, %q instead of %q, is not noticed", bit, i, damaged[i], data[i])
			}
		}
	}
}

func TestManifest_EveryCutAndEveryAddition_IsNoticed(t *testing.T) {
	data := readGolden(t)
	for i := range data {
		if _, err := DecodeManifest(data[:i]); err == nil {
			t.Fatalf("cut to %d of %d bytes is not noticed", i, len(data))
		}
	}
	for _, more := range []string{"\n", " ", "{}", "\x00"} {
		if _, err := DecodeManifest(append(bytes.Clone(data), more...)); err == nil {
			t.Errorf("additional %q is not noticed", more)
		}
	}
}

// withHeader makes a manifest with a right checksum of any body.
func withHeader(body string) []byte {
	return fmt.Appendf(nil, "sluice-checkpoint 1 %d %x\n%s", len(body), sha256.Sum256([]byte(body)), body)
}

func TestManifest_WithARightChecksumButAWrongBody_IsRefused(t *testing.T) {
	const head = `{"job":"j","shard":"s","checkpoint":1,"epoch":1,"createdAt":"2026-01-01T00:00:00Z",`
	good := head + `"states":[{"name":"p","text":"x"}]}`
	_, err := DecodeManifest(withHeader(good))
	must(t, err)
	for name, body := range map[string]string{
		"empty":                  "",
		"unknown field":          head + `"states":[],"more":1}`,
		"two values":             good + good,
		"no id":                  `{"job":"j","shard":"s","epoch":1,"createdAt":"2026-01-01T00:00:00Z","states":[]}`,
		"negative epoch":         strings.Replace(good, `"epoch":1`, `"epoch":-1`, 1),
		"bad job":                strings.Replace(good, `"j"`, `"../j"`, 1),
		"state twice":            head + `"states":[{"name":"p","text":"x"},{"name":"p","text":"y"}]}`,
		"state without bytes":    head + `"states":[{"name":"p"}]}`,
		"state with text+base64": head + `"states":[{"name":"p","text":"x","base64":"eA=="}]}`,
		"state without name":     head + `"states":[{"name":"","text":"x"}]}`,
		"empty ref":              head + `"states":[{"name":"p","text":"x","refs":[""]}]}`,
		"year 12000":             strings.Replace(good, "2026", "12000", 1),
	} {
		if m, err := DecodeManifest(withHeader(body)); err == nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestManifest_OfANewerRelease_IsNotCalledDamaged(t *testing.T) {
	_, err := DecodeManifest([]byte("sluice-checkpoint 2 0 abc\n"))
	if !errors.Is(err, ErrVersion) {
		t.Errorf("%v", err)
	}
	if _, err := (Manifest{Version: 2}).Encode(); !errors.Is(err, ErrVersion) {
		t.Errorf("%v", err)
	}
}

func TestManifest_AnyState_ComesBackByteForByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := goldenManifest()
		m.ID = ID(rapid.Int64Range(1, 1<<62).Draw(t, "id"))
		m.Config = rapid.MapOfN(rapid.String(), rapid.String(), 1, 3).Draw(t, "config")
		state := rapid.OneOf(
			rapid.SliceOf(rapid.Byte()),
			rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }),
		)
		m.States = nil
		for _, name := range rapid.SliceOfNDistinct(rapid.StringN(1, 10, -1), 1, 4, rapid.ID).Draw(t, "names") {
			m.States = append(m.States, NamedState{Name: name, State: state.Draw(t, "state")})
		}
		data, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeManifest(data)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%+v, %v, want %+v", got, err, m)
		}
	})
}

func FuzzDecodeManifest(f *testing.F) {
	golden := readGolden(f)
	f.Add(golden, false)
	_, body, _ := bytes.Cut(golden, []byte("\n"))
	f.Add(body, true)
	f.Add([]byte(`{"job":"j","shard":"s","checkpoint":1,"epoch":1,"createdAt":"2026-01-01T00:00:00+23:59","states":null}`), true)
	f.Add([]byte("sluice-checkpoint 1 0 \n"), false)
	f.Fuzz(func(t *testing.T, data []byte, asBody bool) {
		if asBody { // a checksum that the fuzzer cannot guess
			data = withHeader(string(data))
		}
		m, err := DecodeManifest(data)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatalf("decoded %+v, which cannot be encoded: %v", m, err)
		}
		m2, err := DecodeManifest(again)
		if err != nil || m2.ID != m.ID || len(m2.States) != len(m.States) {
			t.Fatalf("%+v became %+v, %v", m, m2, err)
		}
		for i, s := range m.States {
			if !bytes.Equal(m2.States[i].State, s.State) {
				t.Fatalf("state %q became %q", s.State, m2.States[i].State)
			}
		}
	})
}
