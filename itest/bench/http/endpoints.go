//go:build unix

package http

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// startPython starts the HTTP server of examples/python-effects on a free port.
func startPython(ctx context.Context) (url string, stop func()) {
	address := proof.Must(proof.FreeAddress())
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.CommandContext(ctx, "python3", "-u", "examples/python-effects/transfer.py")
	cmd.Env = append(os.Environ(), "PORT="+port)
	out := proof.Must(cmd.StdoutPipe())
	proof.Check(cmd.Start())
	stop = func() { _, _ = cmd.Process.Kill(), cmd.Wait() }
	if line, err := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(line, "listening on") {
		stop()
		proof.Check(fmt.Errorf("the server in Python does not listen: %q, %w", line, err))
	}
	return "http://" + address + "/transfer", stop
}

// answer responds at once, with the same response as the Python server.
func answer(to http.ResponseWriter, r *http.Request) {
	var t struct {
		From, To, Text string
		Amount         int
	}
	if err := json.NewDecoder(r.Body).Decode(&t); err != nil {
		to.WriteHeader(http.StatusBadRequest)
		return
	}
	to.Header().Set("Content-Type", "application/vnd.semel.effects+json")
	_, _ = fmt.Fprintf(to, `{"effects":[{"statement":"book","params":{"account":%q,"amount":%d}},{"statement":"book","params":{"account":%q,"amount":%d}},{"statement":"note","params":{"account":%q,"text":%q}}]}`,
		t.From, -t.Amount, t.To, t.Amount, t.To, t.Text)
}

// load calls the endpoint once for each message, with InFlight calls at the same time. The result is the number of
// answers per second.
func (w *world) load(ctx context.Context, url string) float64 {
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: w.InFlight, MaxIdleConnsPerHost: w.InFlight}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, w.InFlight)
	began := time.Now()
	for worker := range w.InFlight {
		group.Go(func() {
			for i := next.Add(1); i <= int64(w.Messages) && errs[worker] == nil; i = next.Add(1) {
				errs[worker] = ask(ctx, client, url, transfer(int(i)))
			}
		})
	}
	group.Wait()
	proof.Check(errors.Join(errs...))
	return float64(w.Messages) / time.Since(began).Seconds()
}

func ask(ctx context.Context, client *http.Client, url, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		err = errors.Join(err, errors.New(response.Status))
	}
	return errors.Join(err, response.Body.Close())
}
