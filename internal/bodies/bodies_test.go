package bodies

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAMadeUpBodyHasTheLengthThatWasAsked(t *testing.T) {
	for n := Least; n < 3000; n++ {
		if body := Sized(n); len(body) != n || !json.Valid(body) {
			t.Fatalf("Sized(%d) has %d bytes: %s", n, len(body), body)
		}
	}
	if body := Sized(1); len(body) != Least || !json.Valid(body) {
		t.Errorf("the shortest body has %d bytes: %s", len(body), body)
	}
}

func TestWithoutWebhooksMadeUpBodiesStandInAndSayWhy(t *testing.T) {
	sets, missing, err := Sets("")
	if err != nil || !errors.Is(missing, ErrNoWebhooks) {
		t.Fatal(missing, err)
	}
	if last := sets[2]; last.Name != "made-up-10KB" || last.Mean() != 10_000 {
		t.Errorf("%s of %d bytes replaces the webhooks", last.Name, last.Mean())
	}
}

func TestWebhooksAreReadCompact(t *testing.T) {
	file := filepath.Join(t.TempDir(), "index.json")
	write(t, file, `[{"name":"push","examples":[{"a": 1}, {"b": [1, 2]}]}, {"name":"ping","examples":[]}]`)
	sets, missing, err := Sets(file)
	if err != nil || missing != nil {
		t.Fatal(missing, err)
	}
	if got := sets[2]; got.Name != "webhooks" || len(got.All) != 2 || string(got.All[1]) != `{"b":[1,2]}` {
		t.Errorf("%s %q", got.Name, got.All)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAFileThatHoldsNoWebhooksIsAnErrorThatSaysWhereToGetThem(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"broken": `[{"name"`, "empty": `[]`, "another": `{"name":"x"}`} {
		write(t, filepath.Join(folder, name), text)
	}
	for _, name := range []string{"missing", "broken", "empty", "another"} {
		if _, _, err := Sets(filepath.Join(folder, name)); err == nil || !strings.Contains(err.Error(), "scripts/fetch-webhooks") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestALengthIsReadWithItsUnit(t *testing.T) {
	for text, want := range map[string]int{"200": 200, "200B": 200, "1KiB": 1024, "10KB": 10_000, "2MiB": 2 << 20, "1MB": 1_000_000} {
		if n, err := ParseSize(text); err != nil || n != want {
			t.Errorf("%s is %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"", "KiB", "0", "-5", "1.5KiB", "10kb", "ten", "99999999999MB"} {
		if n, err := ParseSize(text); err == nil || !strings.Contains(err.Error(), "write 200") {
			t.Errorf("%q is %d, %v", text, n, err)
		}
	}
}
