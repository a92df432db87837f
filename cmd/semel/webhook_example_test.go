package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// webhookRun is a `semel run` that receives webhooks.
type webhookRun struct {
	cmd *exec.Cmd
	log *bufio.Scanner
}

// startWebhookRun starts a run in folder and waits until the run listens.
func startWebhookRun(t *testing.T, binary, folder string) *webhookRun {
	t.Helper()
	r := &webhookRun{cmd: exec.Command(binary, "run", "--config", "semel.yaml")}
	r.cmd.Dir = folder
	stderr, err := r.cmd.StderrPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(reactionTimeout, func() { _ = r.cmd.Process.Kill() })
	t.Cleanup(func() { guard.Stop(); _ = r.cmd.Process.Kill(); _ = r.cmd.Wait() })
	r.log = bufio.NewScanner(stderr)
	for r.log.Scan() {
		if strings.Contains(r.log.Text(), "webhooks are received") {
			return r
		}
	}
	t.Fatal("it never listened")
	return nil
}

// end stops the run and waits until the run has ended.
func (r *webhookRun) end(t *testing.T) {
	t.Helper()
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	for r.log.Scan() { // read the rest of the log, because a full pipe would block the process
	}
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("the run ended: %v", err)
	}
}

// waitForResult repeats a query on a database in folder until the result equals the parameter want.
func waitForResult(t *testing.T, folder, database, query, want string) {
	t.Helper()
	got := ""
	for began := time.Now(); time.Since(began) < reactionTimeout; {
		if got = string(output(t, folder, "sqlite", database, query)); got == want {
			return
		}
	}
	t.Errorf("%s is %q, want %q", query, got, want)
}

func TestTheWebhookExampleDoesWhatItsTextSays(t *testing.T) {
	t.Run("F3_githubs_webhooks_are_a_table_of_issues_over_a_kill", func(t *testing.T) {
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS("../../examples/github-webhooks")); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(folder, "send.sh"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("GITHUB_SECRET", "0123456789abcdef0123456789abcdef")
		t.Setenv("PORT", freePort(t))
		binary := filepath.Join(folder, "semel")
		output(t, ".", "go", "build", "-o", binary, ".")
		const from = `{"action":"a","issue":{"number":7,"title":"Too slow","state":"`
		opened := from + `open","updated_at":"2026-01-02T10:00:00Z"},"repository":{"full_name":"octo/cat"}}`
		closed := from + `closed","updated_at":"2026-01-02T11:00:00Z"},"repository":{"full_name":"octo/cat"}}`
		send := func(delivery, body, want string) {
			t.Helper()
			if got := string(output(t, folder, "./send.sh", delivery, body)); !strings.Contains(got, want) {
				t.Errorf("%s: %s", delivery, got)
			}
		}
		run := startWebhookRun(t, binary, folder)
		send("d-2", closed, `{"result":"received"}`)
		send("d-1", opened, `{"result":"received"}`)
		send("d-2", closed, `{"result":"duplicate"}`)
		_ = run.cmd.Process.Kill()
		run = startWebhookRun(t, binary, folder)
		send("d-2", closed, `{"result":"duplicate"}`)
		t.Setenv("GITHUB_SECRET", "another-secret-of-somebody")
		send("d-3", opened, "webhook-forged")
		waitForResult(t, folder, "issues.db", "select repository || ' ' || number || ' ' || state from issues", "octo/cat 7 closed\n")
		waitForResult(t, folder, "issues.db", "select count(*) from semel_inbox where state = 'COMPLETED'", "2\n")
		run.end(t)
	})
}

// block returns the code block with index n in a document, counting only blocks of the given language.
func block(t *testing.T, document, language string, n int) string {
	t.Helper()
	parts := strings.Split(document, "```"+language+"\n")
	if len(parts) <= n+1 {
		t.Fatalf("the document has no block %d of %s", n, language)
	}
	text, _, _ := strings.Cut(parts[n+1], "```")
	return text
}

func TestTheDocumentOfWebhooksWorksAsItStands(t *testing.T) {
	t.Run("F3_policy_table_and_requests_of_docs_webhooks_md", func(t *testing.T) {
		text, err := os.ReadFile("../../docs/guides/webhooks.md")
		if err != nil {
			t.Fatal(err)
		}
		folder, document, port := t.TempDir(), string(text), freePort(t)
		at := func(text string) string { return strings.ReplaceAll(text, "127.0.0.1:8080", "127.0.0.1:"+port) }
		for name, content := range map[string]string{
			"semel.yaml": at(block(t, document, "yaml", 0)), "setup.sql": block(t, document, "sql", 0), "send.sh": at(block(t, document, "sh", 1)),
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, secret, _ := strings.Cut(block(t, document, "sh", 0), "PAYMENTS_SECRET=")
		secret, _, _ = strings.Cut(secret, "\n")
		t.Setenv("PAYMENTS_SECRET", secret)
		binary := filepath.Join(folder, "semel")
		output(t, ".", "go", "build", "-o", binary, ".")
		run := startWebhookRun(t, binary, folder)
		said := string(output(t, folder, "sh", "send.sh"))
		if strings.Count(said, "HTTP/1.1 200 OK") != 2 || !strings.Contains(said, `{"result":"received"}`) || !strings.Contains(said, `{"result":"duplicate"}`) {
			t.Errorf("%s", said)
		}
		waitForResult(t, folder, "shop.db", "select id || ' ' || amount from charges", "ch_1 500\n")
		run.end(t)
	})
}
