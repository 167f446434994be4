package retrymode

import (
	"fmt"
	"reflect"
	"strings"
)

// Scope says which calls of a client share a gate, and a circuit breaker. The zero value is unset and not valid in [Options].
type Scope int

const (
	// ScopeBucket is one for the reads and one for the writes of each bucket.
	ScopeBucket Scope = iota + 1
	// ScopePrefix is ScopeBucket, and apart for each key prefix of Options.PrefixDepth path segments. S3's own limits are per prefix.
	ScopePrefix
	// ScopeEndpoint is one for all calls of the client.
	ScopeEndpoint
)

// String returns the spelling used in configuration files.
func (s Scope) String() string {
	switch s {
	case ScopeBucket:
		return "bucket"
	case ScopePrefix:
		return "prefix"
	case ScopeEndpoint:
		return "endpoint"
	default:
		return fmt.Sprintf("Scope(%d)", int(s))
	}
}

// scope is the name of one gate, and of its circuit breaker. The zero value is the one that everything shares.
type scope struct {
	bucket, prefix string
	kind           scopeKind
}

type scopeKind int

const (
	kindAll scopeKind = iota
	kindRead
	kindWrite
)

// String is "bucket/prefix read", for statistics.
func (s scope) String() string {
	switch s.kind {
	case kindRead:
		return s.bucket + "/" + s.prefix + " read"
	case kindWrite:
		return s.bucket + "/" + s.prefix + " write"
	default:
		return "endpoint"
	}
}

// scopeOf returns the scope of a call: operation is the SDK's name, in its input.
func (o Options) scopeOf(operation string, in any) scope {
	if o.Scope == ScopeEndpoint {
		return scope{}
	}
	bucket, key := target(in)
	s := scope{bucket: bucket, kind: kindWrite}
	for _, read := range []string{"Get", "Head", "List"} {
		if strings.HasPrefix(operation, read) {
			s.kind = kindRead
		}
	}
	if o.Scope == ScopePrefix {
		s.prefix = prefixOf(key, o.PrefixDepth)
	}
	return s
}

// prefixOf returns the first depth path segments of a key, with their slashes: all of them if there are fewer, without the object's own name.
func prefixOf(key string, depth int) string {
	end := 0
	for range depth {
		i := strings.IndexByte(key[end:], '/')
		if i < 0 {
			break
		}
		end += i + 1
	}
	return key[:end]
}

// target returns the bucket and the key, or the prefix of a listing, that an S3 input names. Inputs of all operations are plain structs with these fields, and this package knows
// no service, so they are looked up by name.
func target(in any) (bucket, key string) {
	v := reflect.Indirect(reflect.ValueOf(in))
	if v.Kind() != reflect.Struct {
		return "", ""
	}
	if bucket = text(v.FieldByName("Bucket")); bucket == "" {
		return "", ""
	}
	if key = text(v.FieldByName("Key")); key == "" {
		key = text(v.FieldByName("Prefix"))
	}
	return bucket, key
}

// text is the string that a *string field points to.
func text(v reflect.Value) string {
	if !v.IsValid() || v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.String {
		return ""
	}
	return v.Elem().String()
}
