package s3test_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

// dials counts the connections a client opens.
func dials(srv *s3test.Server) (*http.Client, *atomic.Int32) {
	var n atomic.Int32
	t := srv.Transport()
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		n.Add(1)
		return srv.DialContext(ctx, network, addr)
	}
	return &http.Client{Transport: t}, &n
}

func TestMemoryNetwork_KeepsConnectionsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := s3test.New(s3test.Options{Buckets: []string{"b"}})
		defer srv.Close()
		hc, n := dials(srv)
		client := newClient(srv, func(o *s3.Options) { o.HTTPClient = hc })
		// With latency, as Transport's comment advises those who count connections.
		srv.Control(s3test.Match{KeyPrefix: "err"}, s3test.Always(s3test.SlowDown().After(time.Microsecond)))
		srv.Control(s3test.Match{}, s3test.Always(s3test.Delay(time.Microsecond)))
		data := pattern(3<<20, 0)
		for i := range 2 {
			_, err := put(t, client, fmt.Sprint(i), data)
			require.NoError(t, err)
			_, err = put(t, client, "err", data)
			requireCode(t, err, 503, "SlowDown")
			_, body, err := get(t, client, fmt.Sprint(i))
			require.NoError(t, err)
			require.True(t, body == data)
		}
		require.EqualValues(t, 1, n.Load(), "an answer that refuses a body leaves the connection usable")
	})
}

func TestMemoryNetwork_EarlyAnswersToLargeBodiesDoNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := s3test.New(s3test.Options{Buckets: []string{"b"}})
		defer srv.Close()
		client := newClient(srv)
		replies := []*s3test.Reply{s3test.SlowDown().Early(), s3test.ResetBefore(), s3test.SlowDown().Early().After(time.Second), s3test.ResetAfter()}
		for i, r := range replies {
			remove := srv.Control(s3test.Match{}, s3test.Always(r))
			for _, size := range []int{1, 100_000, 1 << 20, 3 << 20} { // around the sizes at which net/http changes its ways
				start := time.Now()
				_, err := put(t, client, "k", pattern(size, 0))
				assert.Error(t, err, "reply %d, size %d", i, size)
				assert.Less(t, time.Since(start), 5*time.Second, "reply %d, size %d", i, size)
			}
			remove()
		}
		_, err := put(t, client, "k", "x")
		require.NoError(t, err)
	})
}

func TestMemoryNetwork_ManyClientsAtOnce(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		srv.Control(s3test.Match{Every: 3}, s3test.Always(s3test.Delay(100*time.Millisecond)))
		errs := make(chan error)
		for g := range 32 {
			go func() {
				var err error
				for i := range 10 {
					if _, e := put(t, client, fmt.Sprintf("%d/%d", g, i), pattern(2_000, byte(i))); e != nil {
						err = e
					}
				}
				errs <- err
			}()
		}
		for range 32 {
			require.NoError(t, <-errs)
		}
		require.Len(t, srv.Objects("b"), 320)
	})
}

// The environment may set AWS_CA_BUNDLE, and then the SDK's loader insists on its own kind of client.
func TestDialContext_WorksInTheSDKsOwnClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := s3test.New(s3test.Options{Buckets: []string{"b"}, AccessKey: accessKey, SecretKey: secretKey})
		defer srv.Close()
		hc := awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) { tr.DialContext = srv.DialContext })
		cfg, err := config.LoadDefaultConfig(t.Context(), config.WithHTTPClient(hc), config.WithRegion("us-east-1"),
			config.WithCredentialsProvider(credentials(accessKey, secretKey)), config.WithBaseEndpoint(srv.URL()))
		require.NoError(t, err)
		client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
		_, err = put(t, client, "k", "x")
		require.NoError(t, err)
		sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte("x"))) // what the loader's configuration adds
		require.Equal(t, "PutObject b/k size=1 crc32="+base64.StdEncoding.EncodeToString(sum)+" -> 200\n", srv.Trace())
	})
}

func TestClose_EndsRequestsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := s3test.New(s3test.Options{Buckets: []string{"b"}})
		client := newClient(srv)
		srv.Control(s3test.Match{KeyPrefix: "slow"}, s3test.Always(s3test.Delay(1000*time.Hour)))
		srv.Control(s3test.Match{KeyPrefix: "held"}, func(r s3test.Request) *s3test.Reply {
			<-r.Context().Done()
			return nil
		})
		errs := make(chan error)
		for _, key := range []string{"slow", "held"} {
			go func() {
				_, err := put(t, client, key, "x")
				errs <- err
			}()
		}
		synctest.Wait()
		start := time.Now()
		srv.Close()
		srv.Close()
		require.Error(t, <-errs)
		require.Error(t, <-errs)
		require.Less(t, time.Since(start), time.Second)

		_, err := put(t, client, "k", "x")
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = srv.ListenTCP()
		require.ErrorIs(t, err, http.ErrServerClosed)
	})
}

func TestClose_OfAServerNobodyUsedIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { s3test.New(s3test.Options{}).Close() })
}

func TestTCP_WorksAndLeavesNoGoroutine(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	srv := s3test.New(s3test.Options{Buckets: []string{"b"}, AccessKey: accessKey, SecretKey: secretKey, MinPartSize: 1})
	defer srv.Close()
	url, err := srv.ListenTCP()
	require.NoError(t, err)
	require.Equal(t, url, srv.URL())

	hc := awshttp.NewBuildableClient()
	client := newClient(srv, func(o *s3.Options) { o.HTTPClient = hc })
	data := []string{pattern(1<<20, 1), pattern(1<<20, 2)}
	id, parts := upload(t, client, "k", data, withCRC)
	_, err = complete(t, client, "k", id, parts)
	require.NoError(t, err)
	_, body, err := get(t, client, "k")
	require.NoError(t, err)
	require.True(t, body == data[0]+data[1])

	remove := srv.Control(s3test.Match{Op: s3test.PutObject, Nth: 1}, s3test.Always(s3test.ResetAfter()))
	_, err = put(t, client, "lost", "x")
	require.Error(t, err)
	remove()
	_, err = put(t, client, "k2", "x")
	require.NoError(t, err)
	require.Equal(t, []string{"k", "k2", "lost"}, srv.Keys("b"))

	inMemory := newClient(srv) // both networks at once
	_, err = head(t, inMemory, "k2")
	require.NoError(t, err)
	srv.Close()
}

func TestTCP_EarlyAnswerReachesAClientThatSends(t *testing.T) {
	srv := s3test.New(s3test.Options{Buckets: []string{"b"}})
	defer srv.Close()
	_, err := srv.ListenTCP()
	require.NoError(t, err)
	srv.Control(s3test.Match{}, s3test.Always(s3test.SlowDown().Early()))
	hc := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Second}}
	defer hc.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), "PUT", srv.URL()+"/b/k", bytes.NewReader(make([]byte, 4<<20)))
	require.NoError(t, err)
	req.Header.Set("Expect", "100-continue") // as the SDK does for large bodies: the answer comes before the data
	res, err := hc.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 503, res.StatusCode)
	require.Equal(t, 1, srv.Counts().Status(503))
}

// Under somebody else's HTTP/2 server there is no connection to take over; the stream is reset instead.
func TestHandler_FaultsWorkOverHTTP2(t *testing.T) {
	srv := s3test.New(s3test.Options{Buckets: []string{"b"}})
	defer srv.Close()
	h2 := httptest.NewUnstartedServer(srv)
	h2.EnableHTTP2 = true
	h2.StartTLS()
	defer h2.Close()
	client := newClient(srv, func(o *s3.Options) { o.BaseEndpoint, o.HTTPClient = &h2.URL, h2.Client() })
	remove := srv.Control(s3test.Match{Op: s3test.PutObject}, s3test.Always(s3test.ResetAfter()))
	_, err := put(t, client, "k", "0123456789")
	require.Error(t, err)
	remove()
	srv.Control(s3test.Match{Op: s3test.GetObject, Nth: 1}, s3test.Always(s3test.CutBody(4)))
	_, body, err := get(t, client, "k")
	require.Error(t, err)
	require.Less(t, len(body), 10)
	_, body, err = get(t, client, "k")
	require.NoError(t, err)
	require.Equal(t, "0123456789", body)
}

func TestMemoryNetwork_WithLatencyTheSDKUsesOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := s3test.New(s3test.Options{Buckets: []string{"b"}})
		defer srv.Close()
		srv.Control(s3test.Match{}, s3test.Always(s3test.Delay(time.Microsecond)))
		hc, n := dials(srv)
		client := newClient(srv, func(o *s3.Options) { o.HTTPClient = hc })
		for range 200 {
			id, parts := upload(t, client, "k", []string{"x"}, noCRC)
			_, err := complete(t, client, "k", id, parts)
			require.NoError(t, err)
		}
		require.EqualValues(t, 1, n.Load())
	})
}

func TestClose_InTheMiddleOfTraffic(t *testing.T) {
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			srv := s3test.New(s3test.Options{Buckets: []string{"b"}})
			client := newClient(srv)
			done := make(chan struct{})
			for range 8 {
				go func() {
					defer func() { done <- struct{}{} }()
					for {
						if _, err := put(t, client, "k", pattern(1000, 0)); err != nil {
							return
						}
					}
				}()
			}
			for srv.Counts().Total() < 20 {
				time.Sleep(0)
			}
			srv.Close()
			total := srv.Counts().Total()
			for range 8 {
				<-done
			}
			require.Equal(t, total, srv.Counts().Total(), "nothing happens after Close has returned")
		})
	}
}
