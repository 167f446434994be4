package s3test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// readAll reads the body of a request as it came over the wire. An error means that the client has gone.
func readAll(r *http.Request) ([]byte, error) {
	if r.ContentLength > maxBodySize {
		return nil, nil // refused by unpack, which knows the length from the header
	}
	if r.ContentLength <= 0 {
		return io.ReadAll(r.Body)
	}
	// The length is the client's claim, so memory for it is taken at once only up to a usual part size.
	buf := bytes.NewBuffer(make([]byte, 0, min(r.ContentLength+bytes.MinRead, 64<<20)))
	_, err := buf.ReadFrom(r.Body)
	return buf.Bytes(), err
}

// unpack turns the bytes of the wire into the payload, checks its integrity, and reads the XML of those operations that
// have some. It computes digests, so it runs under no lock.
func (s *Server) unpack(c *call, raw []byte) *apiError {
	if c.http.ContentLength > maxBodySize {
		return fault("EntityTooLarge", "Your proposed upload exceeds the maximum allowed size.",
			"ProposedSize", strconv.FormatInt(c.http.ContentLength, 10), "MaxSizeAllowed", strconv.Itoa(maxBodySize))
	}
	c.body = raw
	if isChunked(c.req.Header) {
		body, trailer, err := decodeChunks(raw)
		if err != nil {
			return fault("IncompleteBody", "The request body is not valid aws-chunked data: "+err.Error()+".")
		}
		if c.req.Header.Get("x-amz-decoded-content-length") == "" {
			return fault("MissingContentLength", "You must provide the x-amz-decoded-content-length HTTP header.")
		}
		if int64(len(body)) != c.req.Size {
			return fault("IncompleteBody", "You did not provide the number of bytes specified by the x-amz-decoded-content-length HTTP header.")
		}
		if err := trailerComplete(c.req.Header, trailer); err != nil {
			return err
		}
		c.body, c.trailer = body, trailer
	} else if c.http.ContentLength < 0 && (c.req.Op == PutObject || c.req.Op == UploadPart) {
		return fault("MissingContentLength", "You must provide the Content-Length HTTP header.")
	}
	if err := verifyBody(c); err != nil {
		return err
	}
	switch c.req.Op {
	case CompleteMultipartUpload:
		return readComplete(c)
	case DeleteObjects:
		return countDeletes(c)
	default:
		return nil
	}
}

func isChunked(h http.Header) bool {
	return strings.Contains(h.Get("Content-Encoding"), "aws-chunked") ||
		strings.HasPrefix(h.Get("x-amz-content-sha256"), "STREAMING-")
}

// decodeChunks undoes aws-chunked encoding: lines "<hex size>[;chunk-signature=...]" each followed by that many bytes, a
// chunk of size 0, then trailer lines "name:value" and an empty line.
func decodeChunks(raw []byte) (body []byte, trailer http.Header, err error) {
	body = make([]byte, 0, len(raw))
	for {
		head, rest, ok := bytes.Cut(raw, []byte("\r\n"))
		if !ok {
			return nil, nil, errors.New("a chunk header is cut off")
		}
		digits, _, _ := strings.Cut(string(head), ";")
		n, err := strconv.ParseUint(digits, 16, 62)
		if err != nil {
			return nil, nil, errors.New("a chunk size is not a hexadecimal number")
		}
		raw = rest
		if n == 0 {
			break
		}
		if uint64(len(raw)) < n+2 || string(raw[n:n+2]) != "\r\n" {
			return nil, nil, errors.New("a chunk is shorter or longer than its header says")
		}
		body = append(body, raw[:n]...)
		raw = raw[n+2:]
	}
	trailer = http.Header{}
	for len(raw) > 0 {
		text, rest, ok := bytes.Cut(raw, []byte("\n"))
		if !ok {
			return nil, nil, errors.New("the trailer is cut off")
		}
		raw = rest
		field := strings.TrimSuffix(string(text), "\r")
		if field == "" {
			continue
		}
		name, value, ok := strings.Cut(field, ":")
		if !ok {
			return nil, nil, errors.New("a trailer has no value")
		}
		trailer.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return body, trailer, nil
}

// trailerComplete checks that what the header announced has come.
func trailerComplete(h, trailer http.Header) *apiError {
	for name := range strings.SplitSeq(h.Get("x-amz-trailer"), ",") {
		if name = strings.TrimSpace(name); name != "" && trailer.Get(name) == "" {
			return fault("MalformedTrailerError", "The request contained trailing data that was not well-formed or did not conform to our published schema.", "TrailerName", name)
		}
	}
	return nil
}

// parseXML reads a request body; S3 says MalformedXML to all it cannot read.
func parseXML(body []byte, v any) *apiError {
	if err := xml.Unmarshal(body, v); err != nil {
		return malformedXML()
	}
	return nil
}
