// Package loopback is for servers that a run starts for itself on this machine.
package loopback

import (
	"context"
	"net"
	"net/http"
)

// FreeAddr returns an address of the loopback interface that nobody listens at. Somebody else may take it before the caller does.
func FreeAddr(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// Answers reports whether a GET of url is answered with the given status now.
func Answers(ctx context.Context, client *http.Client, url string, status int) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == status
}
