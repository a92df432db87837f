// Package proof stores the results of semel check --prove in a file beside the policy, so that semel check
// can use the results. The results are not in a store, because handlers are often tested where the store of
// the production system cannot be reached.
package proof

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/internal/handlertest"
)

// Proof has the results of the subtests of a consumer's handler.
type Proof struct {
	At time.Time `json:"at"`
	// Build is the build of semel, and Policy the hash of the policy file.
	Build  string `json:"build"`
	Policy string `json:"policy"`
	// Database is SQLite or PostgreSQL. Messages is the number of messages that were delivered.
	Database string    `json:"database"`
	Messages int       `json:"messages"`
	Subtests []Subtest `json:"subtests"`
}

// Subtest is the result of one subtest.
type Subtest struct {
	Name  string            `json:"name"`
	Group handlertest.Group `json:"group"`
	// Result is pass, fail or not_applicable.
	Result Result `json:"result"`
	// Says describes the fault, or explains why the subtest does not apply.
	Says string `json:"says,omitempty"`
}

// Result is the result of a subtest.
type Result string

// The results of a subtest.
const (
	Pass          Result = "pass"
	Fail          Result = "fail"
	NotApplicable Result = "not_applicable"
)

// Subtests returns the results of a report, in the words of a policy.
func Subtests(report handlertest.Report) []Subtest {
	words := strings.NewReplacer(
		"Config.Version is not set", "the policy checks no versions", "Config.Retention.Keep is not set", "markers are kept forever",
		"Handler.Provider is not set", "the handler makes no calls", "Config.Replay is not set, or it allows effects", "the endpoint gets the header semel-effects", "Provider.Forgets is not set", "the endpoint must remember keys", "Handler.Process is not set", "the command kills no processes",
		"(semel.Message.Key)", "", "leave such numbers out", "leave such columns out with --ignore", "leave them out of Effect", "leave them out with --ignore",
		"Config.Identity", "identity", "Config.Fingerprint", "fingerprint", "Config.Version", "version", "Config.Retention", "retention")
	all := make([]Subtest, len(report))
	for i, r := range report {
		all[i] = Subtest{Name: r.Name, Group: r.Group, Result: Pass, Says: strings.TrimSpace(words.Replace(r.Says()))}
		switch {
		case !r.Applies():
			all[i].Result = NotApplicable
		case r.Err != nil:
			all[i].Result = Fail
		}
	}
	return all
}

// In returns the subtests of the given groups with the given result.
func (p *Proof) In(result Result, groups ...handlertest.Group) (all []Subtest) {
	for _, s := range p.Subtests {
		for _, g := range groups {
			if s.Group == g && s.Result == result {
				all = append(all, s)
			}
		}
	}
	return all
}

// Hash returns the hash of a policy file.
func Hash(p *policy.Policy) (string, error) {
	text, err := shape.ReadFile(p.File)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// File returns the name of the file with the proofs of a policy: semel.proof.json for semel.yaml.
func File(p *policy.Policy) string {
	return strings.TrimSuffix(p.File, filepath.Ext(p.File)) + ".proof.json"
}

// Read returns the proofs of a policy by consumer. The returned map is empty if the file does not exist.
func Read(p *policy.Policy) (map[string]*Proof, error) {
	all := map[string]*Proof{}
	if p.Bare {
		return all, nil
	}
	text, err := shape.ReadFile(File(p))
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", File(p), err)
	}
	return all, nil
}

// Keep adds proofs to the file of the policy. Keep removes proofs of consumers that the policy no longer has.
// If the existing file cannot be read, Keep returns an error and does not overwrite the file.
func Keep(p *policy.Policy, found map[string]*Proof) error {
	all, err := Read(p)
	if err != nil {
		return err
	}
	maps.Copy(all, found)
	maps.DeleteFunc(all, func(name string, _ *Proof) bool { return p.Consumer(name) == nil })
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(File(p), append(text, '\n'), 0o644)
}
