package datagen

import (
	"fmt"
	"strings"
)

// Kind tells how a field's values come about.
type Kind uint8

const (
	// Random is a string of hexadecimal digits of fixed length, as Flink's random strings are.
	Random Kind = iota + 1
	// Sequence is the decimal text of start, start+1, ... end.
	Sequence
)

// Kinds returns every kind.
func Kinds() []Kind { return []Kind{Random, Sequence} }

// ParseKind reads a kind in any case.
func ParseKind(s string) (Kind, error) {
	for _, k := range Kinds() {
		if strings.EqualFold(s, k.String()) {
			return k, nil
		}
	}
	return 0, fmt.Errorf("kind %q: want random or sequence", s)
}

// String returns the spelling of the configuration.
func (k Kind) String() string {
	switch k {
	case Random:
		return "random"
	case Sequence:
		return "sequence"
	default:
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
}

// MarshalText returns String; it fails for a value that is not a kind.
func (k Kind) MarshalText() ([]byte, error) {
	_, err := ParseKind(k.String())
	return []byte(k.String()), err
}

// UnmarshalText is ParseKind.
func (k *Kind) UnmarshalText(text []byte) error {
	v, err := ParseKind(string(text))
	if err == nil {
		*k = v
	}
	return err
}
