package house

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	pageLink  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInSlug = regexp.MustCompile(`[^\pL\pN_ -]`)
)

// markdown returns the pages of the repository without code blocks. The keys are the paths below the root.
func markdown(t *testing.T) map[string]string {
	pages := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "docs/*/*/*.md", "examples/*/README.md"} {
		found, err := filepath.Glob(root + "/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			pages[name] = codeBlock.ReplaceAllString(read(t, name), "")
		}
	}
	return pages
}

func TestTheLinksOfThePagesLeadToFilesAndHeadings(t *testing.T) {
	pages, found := markdown(t), 0
	for name, text := range pages {
		for _, match := range pageLink.FindAllStringSubmatch(text, -1) {
			path, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(match[1], "://") {
				continue
			}
			found++
			target := name
			if path != "" {
				target = filepath.Join(filepath.Dir(name), path)
			}
			if _, err := os.Stat(root + "/" + target); err != nil {
				t.Errorf("%s links %s: %v", name, match[1], err)
			} else if anchor != "" && strings.HasSuffix(target, ".md") && !slices.Contains(headings(pages[target]), anchor) {
				t.Errorf("%s links %s, but %s has no such heading", name, match[1], target)
			}
		}
	}
	if found < 300 {
		t.Errorf("only %d links were found", found)
	}
}

// headings returns the anchors that GitHub creates for the headings of a page.
func headings(page string) (anchors []string) {
	for _, match := range heading.FindAllStringSubmatch(page, -1) {
		text := strings.ToLower(regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(match[1], "$1"))
		anchors = append(anchors, strings.ReplaceAll(notInSlug.ReplaceAllString(text, ""), " ", "-"))
	}
	return anchors
}

func TestAPageForUsersHasAtMost2000Words(t *testing.T) {
	for name := range markdown(t) {
		inside := strings.HasPrefix(name, "docs/internals/")
		if n := len(strings.Fields(read(t, name))); strings.HasPrefix(name, "docs/") && !inside && n > 2000 {
			t.Errorf("%s has %d words; split it, or move details to docs/internals", name, n)
		}
	}
}
