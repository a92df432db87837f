package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

const (
	docs       = "../../../../docs/"
	policyDocs = docs + "reference/policy/"
	madeFrom   = "<!-- The rest of this page is written by go test ./cmd/semel/internal/policy -update. -->\n"
)

// pageOfKeys is a page of the reference. The page has the sections of the policy file whose path starts with
// one of the field paths.
type pageOfKeys struct {
	file, title, says string
	paths             []string
}

// pagesOfKeys returns the pages of docs/reference/policy. If the path of a section matches several pages, the
// page with the longest path gets the section.
func pagesOfKeys() []pageOfKeys {
	return []pageOfKeys{
		{"README.md", "", "", []string{""}},
		{"stores.md", "Policy keys: stores", "the databases that hold Semel's tables", []string{"stores"}},
		{"sources.md", "Policy keys: sources", "files, Kafka topics and webhooks", []string{"sources"}},
		{"process.md", "Policy keys: the process", "audit trail, health and metrics, flight recorder, traces", []string{"audit", "listen", "recorder", "traces"}},
		{"consumers.md", "Policy keys: consumers", "name, source, handler and settings of a consumer", []string{"consumers"}},
		{"identity.md", "Policy keys: strategy, identity, version", "what makes an effect happen once, and what identifies a message",
			[]string{"consumers.CONSUMER.strategy", "consumers.CONSUMER.identity", "consumers.CONSUMER.version", "consumers.CONSUMER.dedup", "consumers.CONSUMER.effect"}},
		{"retries.md", "Policy keys: retries, inbox, retention", "retries, dead letters, batches, inbox, alerts, retention, replays",
			[]string{"consumers.CONSUMER.retry", "consumers.CONSUMER.dead_letter", "consumers.CONSUMER.batch", "consumers.CONSUMER.max_unacked",
				"consumers.CONSUMER.inbox", "consumers.CONSUMER.alerts", "consumers.CONSUMER.retention", "consumers.CONSUMER.replay"}},
		{"handler-sql.md", "Policy keys: SQL handlers", "statements that run in the transaction of the marker", []string{"consumers.CONSUMER.handler"}},
		{"handler-http.md", "Policy keys: HTTP handlers", "an endpoint that is called for each message", []string{"consumers.CONSUMER.handler.http"}},
		{"handler-kafka.md", "Policy keys: publishing to Kafka", "a topic to which each message is published", []string{"consumers.CONSUMER.handler.kafka"}},
	}
}

func TestTheReferenceInTheDocsIsCurrent(t *testing.T) {
	for file, made := range newReference(t).pages() {
		path, written := policyDocs+file, ""
		if file == "README.md" {
			var found bool
			if written, _, found = strings.Cut(read(t, path), madeFrom); !found {
				t.Fatalf("%s has no line %q", path, madeFrom)
			}
		}
		text, err := os.ReadFile(path)
		if err == nil && string(text) == written+made {
			continue
		}
		if !*update {
			t.Errorf("%s is not current; go test ./cmd/semel/internal/policy -update writes it (%v)", path, err)
		} else if err := os.WriteFile(path, []byte(written+made), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// reference collects the sections about policy keys and the page of each section.
type reference struct {
	t           *testing.T
	texts       map[string]*strings.Builder
	plannedKeys []string
	// firstSections maps the content of a mapping to the first section that prints the mapping. Later
	// sections with the same content link to the first section.
	firstSections map[string]string
	// files maps the base names of the pages below docs to their paths.
	files map[string]string
}

func newReference(t *testing.T) *reference {
	r := &reference{t: t, texts: map[string]*strings.Builder{}, firstSections: map[string]string{}, files: map[string]string{}}
	found, err := filepath.Glob(docs + "*/*.md")
	if err != nil || len(found) < 50 {
		t.Fatalf("%d pages below docs: %v", len(found), err)
	}
	for _, path := range found {
		r.files[filepath.Base(path)] = strings.TrimPrefix(path, docs)
	}
	return r
}

// pages returns the text of each page. For README.md, pages returns only the part after the hand-written
// text.
func (r *reference) pages() map[string]string {
	all := pagesOfKeys()
	for _, p := range all {
		r.texts[p.file] = &strings.Builder{}
	}
	r.section("", rootShape().Keys())
	out := map[string]string{}
	var list strings.Builder
	for _, p := range all[1:] {
		fmt.Fprintf(&list, "* [%s](%s)\n", strings.TrimPrefix(p.title, "Policy keys: "), p.file)
		out[p.file] = fmt.Sprintf("# %s\n\n<!-- Written by go test ./cmd/semel/internal/policy -update, from the table of keys. -->\n\n"+
			"For people who write a policy: %s. The [policy file](README.md) says how the file is read.\n%s", p.title, p.says, r.texts[p.file])
	}
	out["identity.md"] += "\n## Kinds of effects\n\nA strategy that does not protect the kind of effect is rejected, with the reason. Where the last column says so, `retention` has no default.\n\n" + effectTable()
	out["README.md"] = madeFrom + "\n## Pages of keys\n\n" + list.String() + r.texts["README.md"].String() +
		"\n## Known and not yet available\n\nA policy with one of these keys is rejected with exit code 3: " + strings.Join(r.plannedKeys, ", ") + ".\n"
	return out
}

// section writes the keys of a mapping, then the sections of nested mappings.
func (r *reference) section(path string, keys []shape.Meta) {
	b := r.texts[pageOf(path).file]
	title := "The file"
	if path != "" {
		title = "`" + path + "`"
	}
	if !namesOnly(keys) {
		fmt.Fprintf(b, "\n## %s\n\n", title)
	}
	var below []shape.Meta
	for _, m := range keys {
		at := join(path, m.Name)
		switch {
		case m.Later:
			r.plannedKeys = append(r.plannedKeys, "`"+at+"`")
		case !namesOnly(keys):
			fmt.Fprintf(b, "* `%s`%s: %s%s\n", m.Name, value(m), r.completeLinks(path, summarize(m.Doc)), r.linkToEarlier(path, at, m.Shape.Keys()))
		}
		if !m.Later && len(m.Shape.Keys()) > 0 && (namesOnly(keys) || r.firstSections[content(m.Shape.Keys())] == at) {
			below = append(below, m)
		}
	}
	for _, m := range below {
		r.section(join(path, m.Name), m.Shape.Keys())
	}
}

// linkToEarlier records that the section at the path in the parameter at prints the given keys. If an earlier section
// prints the same keys, the method returns a link to that section.
func (r *reference) linkToEarlier(path, at string, keys []shape.Meta) string {
	if len(keys) == 0 {
		return ""
	}
	first, found := r.firstSections[content(keys)]
	if !found {
		r.firstSections[content(keys)] = at
		return ""
	}
	for namesOnly(keys) {
		first, keys = join(first, keys[0].Name), keys[0].Shape.Keys()
	}
	link := "#" + regexp.MustCompile(`[^a-z0-9_-]`).ReplaceAllString(strings.ToLower(first), "")
	if on := pageOf(first).file; on != pageOf(path).file {
		link = on + link
	}
	return fmt.Sprintf(" Keys as in [`%s`](%s).", first, link)
}

var linkInKey = regexp.MustCompile(`\]\(([a-z-]*)(\.md)?(#[a-z-]+)?\)`)

// completeLinks completes a link in the text of a key. In the text, the link names a page by its base
// name, or a section by its page or heading.
func (r *reference) completeLinks(path, text string) string {
	return linkInKey.ReplaceAllStringFunc(text, func(link string) string {
		part := linkInKey.FindStringSubmatch(link)
		name, anchor := part[1], part[3]
		if name == "" {
			name = strings.TrimPrefix(anchor, "#")
			switch name {
			case "effects":
				return "](identity.md#kinds-of-effects)"
			case "effects-in-the-answer":
				name, anchor = "http-effects", ""
			case "types-of-parameters":
				name = "sql-handlers"
			default:
				anchor = ""
			}
		}
		file, found := r.files[name+".md"]
		if !found {
			r.t.Errorf("%s links %s, but docs have no such page", path, link)
		}
		to, err := filepath.Rel("reference/policy", file)
		if err != nil {
			r.t.Error(err)
		}
		return "](" + to + anchor + ")"
	})
}

var sentence = regexp.MustCompile(`.*?[.!](?: |$)`)

// summarize returns the first sentence of a key's text, and all sentences about defaults, conditions
// and links. The JSON Schema has the complete text.
func summarize(text string) string {
	var kept []string
	for i, s := range sentence.FindAllString(text, -1) {
		needed := regexp.MustCompile(`^(Default|Either|Needs|Requires|See )|required|Otherwise`).MatchString(s)
		if i == 0 || needed {
			kept = append(kept, strings.TrimSpace(s))
		}
	}
	return strings.Join(kept, " ")
}

// pageOf returns the page of a section. If several pages match, pageOf returns the page with the longest
// path.
func pageOf(path string) (found pageOfKeys) {
	longest := -1
	for _, p := range pagesOfKeys() {
		for _, begin := range p.paths {
			within := begin == "" || path == begin || strings.HasPrefix(path, begin+".")
			if within && len(begin) > longest {
				found, longest = p, len(begin)
			}
		}
	}
	return found
}

// namesOnly reports whether the user chooses the keys of the mapping, as in the mapping of stores.
func namesOnly(keys []shape.Meta) bool {
	return len(keys) == 1 && strings.ToUpper(keys[0].Name) == keys[0].Name
}

// content returns the keys and all nested keys as text, so that tests can compare mappings.
func content(keys []shape.Meta) string {
	var b strings.Builder
	for _, m := range keys {
		fmt.Fprintf(&b, "%s %s %s {", m.Name, m.Doc, value(m))
		if !m.Later {
			b.WriteString(content(m.Shape.Keys()))
		}
		b.WriteString("}")
	}
	return b.String()
}

// value returns, in parentheses, the kind and limits of a key's value, and the default or the word required.
// value returns "" for a nested mapping, which has a section of its own.
func value(m shape.Meta) string {
	if m.Later {
		return ""
	}
	var parts []string
	if words := m.Shape.Words(); words != "a mapping" {
		parts = append(parts, words)
	}
	switch {
	case m.Required:
		parts = append(parts, "required")
	case m.Def != "":
		parts = append(parts, "default `"+m.Def+"`")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// effectTable returns the table of effect kinds as Markdown. The policy rules use the same table.
func effectTable() string {
	var b strings.Builder
	b.WriteString("| `kind` | what it is |")
	for _, g := range guards() {
		fmt.Fprintf(&b, " %s |", g)
	}
	b.WriteString(" `retention` |\n|---|---|" + strings.Repeat("---|", len(guards())) + "---|\n")
	for _, k := range effectKinds() {
		fmt.Fprintf(&b, "| `%s` | %s |", k.kind, k.definition)
		for _, g := range guards() {
			fmt.Fprintf(&b, " %s |", k.offers(g))
		}
		fmt.Fprintf(&b, " %s |\n", map[bool]string{true: "must be written", false: ""}[k.needsRetention])
	}
	return b.String()
}

func guards() []guard { return []guard{byMarker, byBusinessKey, byNature, byLease, byAnswer} }

func (k effectKind) offers(g guard) string {
	if k.unsuitableGuards[g] != "" {
		return "no"
	}
	return "yes"
}
