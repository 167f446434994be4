package retrymode

import (
	"fmt"
	"strings"
)

// Mode is the value of s3.retry.mode. The zero value is unset and not valid in [Options].
type Mode int

const (
	// Standard retries each call on its own: jittered backoff, nothing shared between calls but the in-flight limit.
	Standard Mode = iota + 1
	// Adaptive makes as many attempts as Standard, each of them paced by a limiter that learns from refusals what the store delivers.
	Adaptive
)

// String returns the spelling used in configuration files.
func (m Mode) String() string {
	switch m {
	case Standard:
		return "standard"
	case Adaptive:
		return "adaptive"
	default:
		return fmt.Sprintf("Mode(%d)", int(m))
	}
}

// ParseMode reads a mode in any letter case.
func ParseMode(s string) (Mode, error) {
	for _, m := range []Mode{Standard, Adaptive} {
		if strings.EqualFold(s, m.String()) {
			return m, nil
		}
	}
	return 0, fmt.Errorf("unknown retry mode %q, want standard or adaptive", s)
}

// MarshalText writes the spelling that [ParseMode] reads; an unset or unknown mode is an error.
func (m Mode) MarshalText() ([]byte, error) {
	if m != Standard && m != Adaptive {
		return nil, fmt.Errorf("unknown retry mode %d", int(m))
	}
	return []byte(m.String()), nil
}

// UnmarshalText is [ParseMode].
func (m *Mode) UnmarshalText(text []byte) error {
	v, err := ParseMode(string(text))
	if err != nil {
		return err
	}
	*m = v
	return nil
}

// Limiter is what paces attempts in adaptive mode. The zero value is unset and not valid in [Options].
type Limiter int

const (
	// LimiterGate paces at the rate that the store delivers: see package [github.com/sluice-go/sluice/retrymode/gate].
	LimiterGate Limiter = iota + 1
	// LimiterSDK is the limiter of the AWS SDK's adaptive mode.
	LimiterSDK
)

// String returns the spelling used in configuration files.
func (l Limiter) String() string {
	switch l {
	case LimiterGate:
		return "gate"
	case LimiterSDK:
		return "sdk"
	default:
		return fmt.Sprintf("Limiter(%d)", int(l))
	}
}
