package s3fs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs"
)

func TestParsePath_KeepsEveryByteOfTheKey(t *testing.T) {
	for text, want := range map[string]s3fs.Path{
		"s3://b/k":              {Bucket: "b", Key: "k"},
		"s3a://b/k":             {Bucket: "b", Key: "k"},
		"S3://b/k":              {Bucket: "b", Key: "k"},
		"s3://b":                {Bucket: "b"},
		"s3://b/":               {Bucket: "b"},
		"s3://b//k":             {Bucket: "b", Key: "/k"},
		"s3://b/a//b/":          {Bucket: "b", Key: "a//b/"},
		"s3://b/../x":           {Bucket: "b", Key: "../x"},
		"s3://b/a%2Fb?c#d+e f":  {Bucket: "b", Key: "a%2Fb?c#d+e f"},
		"s3://my.bucket-1.x/ü=": {Bucket: "my.bucket-1.x", Key: "ü="},
		"s3://Old_Bucket/k":     {Bucket: "Old_Bucket", Key: "k"},
		"s3://b/s3://c/d":       {Bucket: "b", Key: "s3://c/d"},
	} {
		got, err := s3fs.ParsePath(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

func TestParsePath_SaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "no scheme",
		"/tmp/x":             "no scheme",
		"b/k":                "no scheme",
		"gs://b/k":           `scheme "gs"`,
		"s3://":              "bucket name is empty",
		"s3:///k":            "bucket name is empty",
		"s3://b?x/k":         `'?' is not allowed`,
		"s3://user:pw@host/": "is not allowed",
		"s3://" + strings.Repeat("b", 256) + "/k": "256 characters",
		"s3://b/" + strings.Repeat("k", 1025):     "1025 bytes",
		"s3://b/\xff":                             "not UTF-8",
	} {
		_, err := s3fs.ParsePath(text)
		require.ErrorContains(t, err, want, text)
		_, ok := errors.AsType[*s3fs.PathError](err)
		assert.True(t, ok)
	}
}

func TestJoin_PutsExactlyOneSlashBetween(t *testing.T) {
	for _, c := range []struct{ base, name, want string }{
		{"", "x", "x"}, {"a", "x", "a/x"}, {"a/", "x", "a/x"}, {"a", "/x", "a//x"}, {"a", "../x", "a/../x"},
	} {
		assert.Equal(t, c.want, path(c.base).Join(c.name).Key)
	}
}

func FuzzParsePath(f *testing.F) {
	for _, s := range []string{"s3://b/k", "s3a://b", "s3://b//", "x", "s3://b/%2F"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := s3fs.ParsePath(text)
		if err != nil {
			return
		}
		require.NoError(t, p.Validate())
		again, err := s3fs.ParsePath(p.String())
		require.NoError(t, err)
		require.Equal(t, p, again)
	})
}
