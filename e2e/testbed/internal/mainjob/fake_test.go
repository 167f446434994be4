package mainjob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
	"github.com/sluice-go/sluice/e2e/testbed/internal/store"
)

// The test binary plays all parts: the store, and a small job that keeps the
// same promises as `sluice run` and `sluice verify`, or breaks one on purpose.

// fault is the environment variable that makes the fake break a promise.
const fault = "FAKE_FAULT"

const (
	faultNone   = ""
	faultLose   = "lose"   // one row is not written
	faultRepeat = "repeat" // one row is written twice instead of another
	faultLie    = "lie"    // a row is not written and verify says that it is there
	faultExit   = "exit"   // the job fails
	faultHang   = "hang"   // the job waits for SIGTERM
	faultRush   = "rush"   // the job does not wait for its checkpoints
	faultStore  = "store"  // the store dies under the job
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case store.Subcommand:
			if os.Getenv(fault) == faultStore {
				go dieWhenTold()
			}
			os.Exit(store.Main())
		case "run", "verify":
			if err := fake(os.Args[1], os.Args[2], os.Args[4]); err != nil {
				fmt.Fprintln(os.Stderr, "fake:", err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(m,
		// Idle connections of the SDK's own HTTP client.
		goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// orderToDie is a file in the store's directory, which is where its process stands.
const orderToDie = "die"

func dieWhenTold() {
	for {
		if _, err := os.Stat(orderToDie); err == nil {
			os.Exit(7)
		}
		time.Sleep(5 * time.Millisecond) // in another process
	}
}

type fakeJob struct {
	conf    map[string]string
	client  *s3.Client
	log     *slog.Logger
	fault   string
	calls   int64
	rows    int64
	rowSize int
}

func fake(command, jobFile, report string) error {
	text, err := os.ReadFile(jobFile)
	if err != nil {
		return err
	}
	j := &fakeJob{log: slog.New(slog.NewTextHandler(os.Stderr, nil)), fault: os.Getenv(fault)}
	if err := yaml.Unmarshal(text, &j.conf); err != nil {
		return err
	}
	j.client = s3.New(s3.Options{
		BaseEndpoint: aws.String(j.conf["s3.endpoint"]), Region: j.conf["s3.region"], UsePathStyle: true, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider(j.conf["s3.access-key"], j.conf["s3.secret-key"], ""),
	})
	if j.rows, err = strconv.ParseInt(j.conf["datagen.number-of-rows"], 10, 64); err != nil {
		return err
	}
	length, err := strconv.Atoi(j.conf["datagen.fields.f.length"])
	if err != nil {
		return err
	}
	j.rowSize = length + 1
	var out any
	if command == "run" {
		out, err = j.run()
	} else {
		out, err = j.verify()
	}
	if err != nil {
		return err
	}
	data, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return os.WriteFile(report, data, 0o600)
}

// position is the fake's checkpoint: rows [From, To) are in the object ID.
type position struct{ ID, From, To int64 }

func (j *fakeJob) run() (sluicecmd.RunReport, error) {
	switch j.fault {
	case faultExit:
		return sluicecmd.RunReport{}, errors.New("out of luck")
	case faultStore:
		if err := os.WriteFile(filepath.Join(j.conf["checkpoint.dir"], "..", storeDir, orderToDie), nil, 0o600); err != nil {
			return sluicecmd.RunReport{}, err
		}
		time.Sleep(time.Minute) // SIGTERM ends it
	case faultHang:
		j.log.Info("hanging")
		time.Sleep(time.Minute) // SIGTERM ends it
	}
	interval, err := config.ParseDuration(j.conf["checkpoint.interval"])
	if err != nil {
		return sluicecmd.RunReport{}, err
	}
	pace, err := strconv.ParseInt(j.conf["datagen.rows-per-second"], 10, 64)
	if err != nil {
		return sluicecmd.RunReport{}, err
	}
	step := j.rows/3 + 1
	if pace > 0 && j.fault != faultRush {
		step = max(1, int64(float64(pace)*interval.Seconds()))
	}
	dir := j.conf["checkpoint.dir"]
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return sluicecmd.RunReport{}, err
	}
	file := filepath.Join(dir, "state")
	var at position
	if data, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(data, &at); err != nil {
			return sluicecmd.RunReport{}, err
		}
		if err := j.publish(at); err != nil {
			return sluicecmd.RunReport{}, err
		}
	}
	for at.To < j.rows {
		if pace > 0 && j.fault != faultRush {
			time.Sleep(interval) // the rows of this interval, in another process
		}
		at = position{ID: at.ID + 1, From: at.To, To: min(j.rows, at.To+step)}
		j.log.Info("checkpoint begun", "id", at.ID)
		data, err := json.Marshal(at)
		if err != nil {
			return sluicecmd.RunReport{}, err
		}
		if err := errors.Join(os.WriteFile(file+".tmp", data, 0o600), os.Rename(file+".tmp", file)); err != nil {
			return sluicecmd.RunReport{}, err
		}
		if err := j.publish(at); err != nil {
			return sluicecmd.RunReport{}, err
		}
	}
	t := sluicecmd.Totals{Calls: j.calls, Attempts: j.calls}
	return sluicecmd.RunReport{Rows: j.rows, Totals: t}, nil
}

func (j *fakeJob) publish(at position) error {
	var body bytes.Buffer
	for row := at.From; row < at.To; row++ {
		number := row
		if row == 1 && (j.fault == faultLose || j.fault == faultLie) {
			continue
		}
		if row == 1 && j.fault == faultRepeat {
			number = 0
		}
		fmt.Fprintf(&body, "%0*d\n", j.rowSize-1, number)
	}
	j.calls++
	_, err := j.client.PutObject(context.Background(), &s3.PutObjectInput{
		Bucket: aws.String(bucketName), Key: aws.String(fmt.Sprintf("%s/part-%d", sinkPrefix, at.ID)), Body: bytes.NewReader(body.Bytes()),
	})
	if err == nil {
		j.log.Info("checkpoint committed", "id", at.ID)
	}
	return err
}

func (j *fakeJob) verify() (sluicecmd.VerifyReport, error) {
	v := sluicecmd.VerifyReport{Proven: true}
	j.calls++
	list, err := j.client.ListObjectsV2(context.Background(), &s3.ListObjectsV2Input{Bucket: aws.String(bucketName), Prefix: aws.String(sinkPrefix + "/")})
	if err != nil {
		return v, err
	}
	for _, o := range list.Contents {
		j.calls++
		out, err := j.client.GetObject(context.Background(), &s3.GetObjectInput{Bucket: aws.String(bucketName), Key: o.Key})
		if err != nil {
			return v, err
		}
		body, err := io.ReadAll(out.Body)
		if err != nil {
			return v, err
		}
		v.Rows += int64(bytes.Count(body, []byte("\n")))
		v.Bytes += int64(len(body))
	}
	if j.fault == faultLie {
		v.Rows = j.rows
	}
	if v.Rows != j.rows {
		v.Proven, v.Why = false, fmt.Sprintf("%d rows are missing", j.rows-v.Rows)
	}
	v.Totals = sluicecmd.Totals{Calls: j.calls, Attempts: j.calls}
	return v, nil
}
