package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/sluice-go/sluice/e2e/testbed/internal/loopback"
)

// process is one running server. done is closed after the process was reaped.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer // its end is the polite way to stop the server
	log   io.Closer
	tail  *tail // the server's last words, for errors
	done  chan struct{}
	err   error // of Wait; read after done
}

func spawn(cfg Config, spec serverSpec) (*process, error) {
	orders, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	p := &process{tail: &tail{}, done: make(chan struct{})}
	out := io.Writer(p.tail)
	if cfg.Log != "" {
		f, err := os.OpenFile(cfg.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, err
		}
		p.log, out = f, io.MultiWriter(f, p.tail)
	}
	p.cmd = exec.Command(cfg.Command[0], cfg.Command[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = childAttr()
	p.cmd.WaitDelay = stopTimeout
	stdin, err := p.cmd.StdinPipe()
	if err == nil {
		p.stdin = stdin
		err = p.cmd.Start()
	}
	if err != nil {
		p.release()
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	if _, err := stdin.Write(append(orders, '\n')); err != nil {
		_ = p.kill() // it has ended, or does not listen
		return nil, p.endError()
	}
	return p, nil
}

func (p *process) waitHealthy(ctx context.Context, url string) error {
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport}
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	for {
		if loopback.Answers(ctx, client, url, http.StatusOK) {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.done:
			return p.endError()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) stop(ctx context.Context) error {
	_ = p.stdin.Close()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		return errors.Join(fmt.Errorf("still running after %s, killed", stopTimeout), p.kill())
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), p.kill())
	}
	p.release()
	if p.err != nil {
		return fmt.Errorf("%w: %s", p.err, p.tail)
	}
	return nil
}

func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	if err == nil {
		<-p.done
	}
	p.release()
	return err
}

func (p *process) release() {
	for _, c := range []io.Closer{p.stdin, p.log} {
		if c != nil {
			_ = c.Close()
		}
	}
}

// endError tells why the process ended; only after done.
func (p *process) endError() error {
	reason := p.err
	if reason == nil {
		reason = errors.New("exit status 0")
	}
	return fmt.Errorf("process ended: %w: %s", reason, p.tail)
}
