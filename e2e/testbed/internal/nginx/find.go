package nginx

import (
	"errors"
	"fmt"
	"os/exec"
)

// ErrMissing is returned when the system has no nginx.
var ErrMissing = errors.New("nginx is not installed")

// places are where distributions put nginx; some of them are not on the PATH of
// an ordinary user.
var places = []string{"nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/local/bin/nginx", "/opt/homebrew/bin/nginx"}

// Find returns the path of the nginx executable. The error satisfies
// errors.Is(err, ErrMissing) and says how to get it.
func Find() (string, error) { return find(places) }

func find(places []string) (string, error) {
	for _, place := range places {
		if path, err := exec.LookPath(place); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w, neither on PATH nor in /usr/sbin: on Debian and Ubuntu, apt-get install nginx", ErrMissing)
}
