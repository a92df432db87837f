package proof

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/handlertest"
)

func TestProofsAreKeptBesideThePolicy(t *testing.T) {
	p := &policy.Policy{File: filepath.Join(t.TempDir(), "shop.yaml"), Consumers: []*policy.Consumer{{Name: "billing"}, {Name: "search"}}}
	if all, err := Read(p); len(all) != 0 || err != nil {
		t.Fatalf("without a file: %v, %v", all, err)
	}
	if err := os.WriteFile(p.File, []byte("version: 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	hash, err := Hash(p)
	if err != nil || !strings.HasPrefix(hash, "sha256:") {
		t.Fatalf("%q, %v", hash, err)
	}
	at := time.Date(2026, 5, 3, 10, 0, 0, 0, time.UTC)
	for name, messages := range map[string]int{"billing": 2, "search": 3, "removed": 4} {
		if err := Keep(p, map[string]*Proof{name: {At: at, Policy: hash, Messages: messages}}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Read(p)
	if err != nil || len(all) != 2 || all["billing"].Messages != 2 || all["search"].Policy != hash || !all["search"].At.Equal(at) {
		t.Errorf("%+v, %v", all, err)
	}
	if got, want := File(p), strings.TrimSuffix(p.File, ".yaml")+".proof.json"; got != want {
		t.Errorf("the file is %s, want %s", got, want)
	}
}

func TestAFileThatCannotBeReadIsNotOverwritten(t *testing.T) {
	p := &policy.Policy{File: filepath.Join(t.TempDir(), "shop.yaml"), Consumers: []*policy.Consumer{{Name: "billing"}}}
	if err := os.WriteFile(File(p), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Keep(p, map[string]*Proof{"billing": {}}); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("%v", err)
	}
	if text, _ := os.ReadFile(File(p)); string(text) != "{" {
		t.Errorf("the file has %q", text)
	}
}

func TestResultsAreInTheWordsOfAPolicy(t *testing.T) {
	p := &Proof{Subtests: Subtests(handlertest.Report{
		{Name: "first delivery", Group: handlertest.First},
		{Name: "old version", Group: handlertest.Versions, Err: &handlertest.NotRun{Why: "Config.Version is not set"}},
		{Name: "conflict", Group: handlertest.Duplicates, Err: errors.New("check Config.Identity\n  effect: 1")},
	})}
	for result, want := range map[Result]string{Pass: "", NotApplicable: "the policy checks no versions", Fail: "check identity"} {
		if got := p.In(result, handlertest.Groups()...); len(got) != 1 || got[0].Says != want {
			t.Errorf("%s: %+v, want %q", result, got, want)
		}
	}
}
