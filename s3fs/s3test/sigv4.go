package s3test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	sigAlgorithm = "AWS4-HMAC-SHA256"
	sigTime      = "20060102T150405Z"
	maxSkew      = 15 * time.Minute // S3 refuses requests older or newer than this
)

// authorization is the Authorization header of AWS Signature Version 4.
type authorization struct {
	key, scope    string // scope is date/region/service/aws4_request
	signedHeaders []string
	signature     string
}

// authorize lets a request in or says why not.
func (s *Server) authorize(c *call) *apiError {
	if s.o.AccessKey == "" {
		return nil
	}
	header := c.req.Header.Get("Authorization")
	if header == "" {
		return fault("AccessDenied", "Access Denied")
	}
	auth, ok := parseAuthorization(header)
	if !ok {
		return fault("AuthorizationHeaderMalformed", "The authorization header that you provided is not valid.")
	}
	if auth.key != s.o.AccessKey {
		return fault("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.", "AWSAccessKeyId", auth.key)
	}
	if s.o.SecretKey == "" {
		return nil
	}
	at, err := time.Parse(sigTime, c.req.Header.Get("x-amz-date"))
	if err != nil {
		return fault("AccessDenied", "AWS authentication requires a valid Date or x-amz-date header")
	}
	if skew := time.Since(at); skew > maxSkew || skew < -maxSkew {
		return fault("RequestTimeTooSkewed", "The difference between the request time and the current time is too large.",
			"RequestTime", at.Format(sigTime), "ServerTime", time.Now().UTC().Format(sigTime),
			"MaxAllowedSkewMilliseconds", strconv.FormatInt(maxSkew.Milliseconds(), 10))
	}
	if !hmac.Equal([]byte(auth.signature), []byte(s.signature(c.http, auth, at))) {
		return fault("SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check your key and signing method.", "AWSAccessKeyId", auth.key)
	}
	return nil
}

func parseAuthorization(header string) (authorization, bool) {
	var a authorization
	rest, ok := strings.CutPrefix(header, sigAlgorithm+" ")
	if !ok {
		return a, false
	}
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch name {
		case "Credential":
			a.key, a.scope, _ = strings.Cut(value, "/")
		case "SignedHeaders":
			a.signedHeaders = strings.Split(value, ";")
		case "Signature":
			a.signature = value
		}
	}
	return a, a.key != "" && strings.Count(a.scope, "/") == 3 && len(a.signedHeaders) > 0 && a.signature != ""
}

// signature computes what the client should have sent. The payload enters through x-amz-content-sha256, whose promise is
// checked elsewhere (and which may be UNSIGNED-PAYLOAD or STREAMING-UNSIGNED-PAYLOAD-TRAILER).
func (s *Server) signature(r *http.Request, a authorization, at time.Time) string {
	request := strings.Join([]string{
		r.Method,
		canonicalPath(r),
		canonicalQuery(r.URL.Query()),
		canonicalHeaders(r, a.signedHeaders),
		strings.Join(a.signedHeaders, ";"),
		r.Header.Get("x-amz-content-sha256"),
	}, "\n")
	digest := sha256.Sum256([]byte(request))
	toSign := strings.Join([]string{sigAlgorithm, at.Format(sigTime), a.scope, hex.EncodeToString(digest[:])}, "\n")

	key := []byte("AWS4" + s.o.SecretKey)
	for part := range strings.SplitSeq(a.scope, "/") {
		key = sign(key, part)
	}
	return hex.EncodeToString(sign(key, toSign))
}

func sign(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// canonicalPath is the path as it was sent: S3 signs it as it stands on the wire, without encoding it again.
func canonicalPath(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(path, "/") {
		return r.URL.EscapedPath()
	}
	return path
}

func canonicalQuery(q url.Values) string {
	for _, values := range q {
		slices.Sort(values)
	}
	// Encode sorts by name and escapes as Amazon does, but for the space.
	return strings.ReplaceAll(q.Encode(), "+", "%20")
}

func canonicalHeaders(r *http.Request, names []string) string {
	var b strings.Builder
	for _, name := range names {
		var value string
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		default:
			value = strings.Join(r.Header.Values(name), ",")
		}
		b.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	return b.String()
}
