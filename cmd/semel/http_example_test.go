package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

// python is the process of an example's handler, in Python or another language.
type python struct {
	cmd *exec.Cmd
	// log is the handler's log, with one line for each answered call.
	log *bufio.Scanner
}

// startPython starts the Python handler in folder and waits until the handler listens.
func startPython(t *testing.T, folder string) *python {
	t.Helper()
	return startHandler(t, folder, "python3", "-u", "charge.py")
}

// startHandler starts the handler of an example in folder and waits until the handler listens.
func startHandler(t *testing.T, folder string, command ...string) *python {
	t.Helper()
	if _, err := exec.LookPath(command[0]); err != nil {
		t.Fatalf("the handler of the example cannot run: %s is missing; as root: scripts/services install %s", command[0], command[0])
	}
	p := &python{cmd: exec.Command(command[0], command[1:]...)}
	p.cmd.Dir = folder
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = p.cmd.Stdout
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.log = bufio.NewScanner(out)
	p.await(t, "listening on ")
	t.Cleanup(p.kill)
	return p
}

// await reads the log up to the first line that contains the given text.
func (p *python) await(t *testing.T, text string) {
	t.Helper()
	guard := time.AfterFunc(reactionTimeout, func() { _ = p.cmd.Process.Kill() })
	defer guard.Stop()
	for p.log.Scan() {
		if strings.Contains(p.log.Text(), text) {
			return
		}
	}
	t.Fatalf("the handler never wrote %q", text)
}

func (p *python) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// httpExample returns a folder with a copy of the example http-handler. The handler listens on a free port.
func httpExample(t *testing.T) string {
	t.Helper()
	t.Setenv("WEBHOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	return handlerExample(t, "http-handler", "semel.yaml", "charge.py", "orders.jsonl")
}

// handlerExample copies the files of an example to a folder and changes the handler's port to a free port.
func handlerExample(t *testing.T, example string, files ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join("../../examples", example, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PORT", freePort(t))
	return folder
}

const charges = "select count(*) || ' charges under ' || count(distinct key) || ' keys' from charges"

func TestTheExampleInPythonDoesWhatItsTextSays(t *testing.T) {
	t.Run("K10_a_handler_in_python_alone", func(t *testing.T) {
		folder := httpExample(t)
		startPython(t, folder)
		var summary struct{ Consumers map[string]semel.Counts }
		if err := json.Unmarshal(output(t, folder, "semel", "run", "-o", "json"), &summary); err != nil {
			t.Fatal(err)
		}
		if c := summary.Consumers["charging"]; c.Inbox.Applied != 39 || c.Duplicates != 3 || c.Inbox.Parked != 1 {
			t.Errorf("%+v", c)
		}
		if got := string(output(t, folder, "sqlite", "charges.db", charges)); got != "39 charges under 39 keys\n" {
			t.Error(got)
		}
		if list := output(t, folder, "semel", "messages", "ls"); !bytes.Contains(list, []byte("order-13")) || !bytes.Contains(list, []byte("422 Unprocessable Entity: There is nothing to charge")) {
			t.Errorf("%s", list)
		}
	})
	t.Run("K10_a_request_with_another_signature_charges_nothing", func(t *testing.T) {
		folder := httpExample(t)
		startPython(t, folder)
		t.Setenv("WEBHOOK_SECRET", "whsec_aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMg==")
		replace(t, folder, "semel.yaml", func(policy string) string { // with the default policy, the circuit breaker would open and the run would not end
			return strings.Replace(policy, "    handler:\n", "    retry: {disable_breaker: true}\n    handler:\n", 1)
		})
		output(t, folder, "semel", "run")
		if got := string(output(t, folder, "sqlite", "charges.db", charges)); got != "0 charges under 0 keys\n" {
			t.Error(got)
		}
	})
}

func TestTheExampleInPythonUnderKillsOfBothProcesses(t *testing.T) {
	t.Run("K10_B11_E3_each_order_is_charged_once", func(t *testing.T) {
		const orders, kills = 400, 6
		folder := httpExample(t)
		var lines strings.Builder
		for i := range orders {
			fmt.Fprintf(&lines, `{"specversion":"1.0","id":"o-%d","source":"/shop","type":"order.placed","data":{"card":"c","amount":1}}`+"\n", i)
		}
		replace(t, folder, "orders.jsonl", func(string) string { return lines.String() })
		replace(t, folder, "semel.yaml", func(policy string) string {
			return strings.NewReplacer("timeout: 5s", "timeout: 2500ms", "format: cloudevents", "format: cloudevents, follow: true", "    handler:\n",
				"    inbox: {lease: 3s, poll: 50ms, max_crashes: 100}\n    retry: {max_attempts: 1000, initial_delay: 10ms, max_delay: 100ms, budget: {per_second: 1000}}\n    handler:\n").Replace(policy)
		})
		killBoth(t, folder, kills, "POST /charge", func() *python { return startPython(t, folder) },
			func() bool { return haveCompleted(t, folder, "shop.db", orders) })
		if got, want := string(output(t, folder, "sqlite", "charges.db", charges)), fmt.Sprintf("%d charges under %d keys\n", orders, orders); got != want {
			t.Errorf("%s, and should be %s", got, want)
		}
	})
}

// killBoth kills the handler and Semel in turns, each after 25 more calls, and starts the killed process
// again. When all messages have ended, killBoth stops Semel.
func killBoth(t *testing.T, folder string, kills int, call string, handler func() *python, ended func() bool) {
	t.Helper()
	other, run := handler(), startQuiet(t, folder)
	for i := range kills {
		for range 25 {
			other.await(t, call)
		}
		if i%2 == 0 {
			other.kill()
			other = handler()
		} else {
			run.stopWith(t, syscall.SIGKILL)
			run = startQuiet(t, folder)
		}
	}
	eventually(t, "not everything has ended", ended)
	run.stopWith(t, syscall.SIGTERM)
}

// haveCompleted reports whether n rows of the inbox are completed.
func haveCompleted(t *testing.T, folder, database string, n int) bool {
	t.Helper()
	return string(output(t, folder, "sqlite", database, "select count(*) from semel_inbox where state = 'COMPLETED'")) == fmt.Sprintf("%d\n", n)
}

// replace changes the text of a file in folder.
func replace(t *testing.T, folder, name string, by func(string) string) {
	t.Helper()
	path := filepath.Join(folder, name)
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(by(string(text))), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
