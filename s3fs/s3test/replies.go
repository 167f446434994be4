package s3test

import (
	"net/http"
	"sync"
	"time"
)

type action uint8

const (
	actHandle action = iota + 1 // answer what the operation answers
	actAnswer                   // answer what the reply says
	actReset                    // close the connection
	actCut                      // as actHandle, but the body breaks off
	actLie                      // claim success
)

// Reply says what happens to a request instead of being handled normally. It cannot be changed: its methods return
// changed copies, so one Reply may be given to any number of requests at once. HEAD requests get the status and headers
// of a reply without its body, as HTTP demands.
//
// Unless Early is asked for, the request's body is read to its end before the answer is sent, so that the client sees the
// answer and not a broken pipe, and the connection stays usable.
type Reply struct {
	act         action
	effect      bool // the operation is performed
	early       bool
	status      int
	code        string
	contentType string
	body        string
	header      http.Header
	delay       time.Duration
	answerDelay time.Duration
	cut         int64
}

// Status answers with an HTTP status and, when s3code is not empty, an XML error body with that code. The request has no
// effect.
func Status(status int, s3code string) *Reply {
	return &Reply{act: actAnswer, status: status, code: s3code}
}

// SlowDown answers 503 SlowDown, S3's way to throttle. The request has no effect.
func SlowDown() *Reply { return Status(http.StatusServiceUnavailable, "SlowDown") }

// EmptyBody503 answers 503 without a body, as load balancers do. The request has no effect.
func EmptyBody503() *Reply { return Status(http.StatusServiceUnavailable, "") }

// Raw answers with any body, say the HTML page of a proxy. The request has no effect.
func Raw(status int, contentType, body string) *Reply {
	return &Reply{act: actAnswer, status: status, contentType: contentType, body: body}
}

// NoBody200 answers 200 without a body and without an ETag, as a store that died while it wrote its answer. The request
// has no effect; see [Reply.WithEffect].
func NoBody200() *Reply { return Status(http.StatusOK, "") }

// ErrorIn200 answers 200 with an XML error as body, which S3 does when a CompleteMultipartUpload fails after the answer
// has begun. The request has no effect; see [Reply.WithEffect].
func ErrorIn200(s3code string) *Reply { return Status(http.StatusOK, s3code) }

// ResetBefore closes the connection before the request is read further, without effect and without answer.
//
// net/http itself repeats a GET or HEAD whose connection had been used before, so a client may send two requests where its
// user counts one.
func ResetBefore() *Reply { return &Reply{act: actReset} }

// ResetAfter performs the request and closes the connection instead of answering: the lost answer. The note on repeated
// requests at [ResetBefore] holds here as well.
func ResetAfter() *Reply { return &Reply{act: actReset, effect: true} }

// Delay handles the request normally after d. When the client leaves before that, the request has no effect.
func Delay(d time.Duration) *Reply { return normally.After(d) }

// CutBody handles the request normally, but closes the connection after n bytes of the answer's body; the answer still
// promises the whole length. It is meant for GetObject. A body of n bytes or fewer is sent whole.
func CutBody(n int64) *Reply { return &Reply{act: actCut, effect: true, cut: max(n, 0)} }

// DropEffect200 claims success and does nothing: the store that lies. The claim is made from the request alone: it has
// the ETag and checksum that success would have, whether the upload or the key exists or not. Credentials and checksums
// are not looked at. Reads and listings are handled normally, as they have no effect to drop.
func DropEffect200() *Reply { return &Reply{act: actLie} }

// After returns a copy that waits for d before the effect and the answer. The wait ends early when the client leaves,
// and then nothing further happens; leaving is noticed once the body has been read.
func (r *Reply) After(d time.Duration) *Reply {
	c := *r
	c.delay = d
	return &c
}

// AnswerAfter returns a copy that waits for d after the effect, before the answer: a client that gives up in between has
// caused the effect.
func (r *Reply) AnswerAfter(d time.Duration) *Reply {
	c := *r
	c.answerDelay = d
	return &c
}

// WithEffect returns a copy that performs the request first, for answers that say otherwise: SlowDown().WithEffect()
// is a store that did the work and then complained. It changes nothing for [DropEffect200].
func (r *Reply) WithEffect() *Reply {
	c := *r
	c.effect = c.act != actLie
	return &c
}

// WithHeader returns a copy whose answer carries a header, say Retry-After.
func (r *Reply) WithHeader(name, value string) *Reply {
	c := *r
	c.header = r.header.Clone()
	if c.header == nil {
		c.header = http.Header{}
	}
	c.header.Set(name, value)
	return &c
}

// Early returns a copy of an answer that is sent before the body has been read; the connection is closed afterwards. A
// client that is still sending may see the answer or a broken connection, as in real life. It has no meaning, and is
// ignored, for replies that perform the request.
func (r *Reply) Early() *Reply {
	c := *r
	c.early = c.act == actAnswer && !c.effect
	return &c
}

// response renders the answer of a reply that has one of its own.
func (r *Reply) response(c *call) *response {
	res := newResponse(r.status)
	res.code = r.code
	switch {
	case r.code != "":
		return res.xml(errorXML(c, r.code, "Scripted answer.", nil))
	case r.body != "":
		res.header.Set("Content-Type", r.contentType)
		res.body = []byte(r.body)
	}
	return res
}

// ThrottleRate is a control function for a store with a request quota: it lets n requests through in any span of window,
// whatever they are, and answers the others with [SlowDown]. Refused requests do not count against the quota. One
// function is one quota; it may be registered under several matches.
func ThrottleRate(n int, window time.Duration) func(Request) *Reply {
	var mu sync.Mutex
	var admitted []time.Time // ascending
	return func(Request) *Reply {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		for len(admitted) > 0 && now.Sub(admitted[0]) >= window {
			admitted = admitted[1:]
		}
		if len(admitted) >= n {
			return SlowDown()
		}
		admitted = append(admitted, now)
		return nil
	}
}
