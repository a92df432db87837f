package house

import (
	"bufio"
	"fmt"
	"go/ast"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The variable named is a pattern for the beginning of a subtest's name: the number of the law, case, trap or
// requirement that the subtest covers. A name may begin with several numbers.
var named = regexp.MustCompile(`^(trap_T?\d+|law_\d+|case_\d+|[A-P]\d+[a-z]?)_\w`)

// Cover says that a test covers the number of a law, case, trap or requirement.
type Cover struct {
	// Number is "trap 6", "trap T13", "law 3", "case 14" or "A3".
	Number string
	// Test is the function, Name is the subtest, and Path is the file.
	Test, Name, Path string
}

// Covers returns which numbers of laws, cases, traps and requirements the subtests in the files cover, sorted by
// number. Covers reads string literals in calls of t.Run and in tables of cases.
func Covers(files []*File) []Cover {
	var covers []Cover
	for _, f := range files {
		suite := func(folder string) bool { return strings.HasPrefix(f.Path, folder) }
		if !f.Test() && !slices.ContainsFunc([]string{"storetest/", "sourcetest/", "itest/store/sqlsuite/"}, suite) {
			continue
		}
		for _, d := range f.Tree.Decls {
			covers = append(covers, in(f, d)...)
		}
	}
	slices.SortFunc(covers, func(a, b Cover) int { return strings.Compare(a.sortKey(), b.sortKey()) })
	return slices.Compact(covers)
}

func in(f *File, d ast.Decl) []Cover {
	test := ""
	if fn, ok := d.(*ast.FuncDecl); ok {
		test = fn.Name.Name
	}
	var covers []Cover
	ast.Inspect(d, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok {
			return true
		}
		name, err := strconv.Unquote(literal.Value)
		if err != nil {
			return true
		}
		if strings.ContainsAny(name, " \n") {
			return true
		}
		for rest := name; ; {
			match := named.FindStringSubmatch(rest)
			if match == nil {
				return true
			}
			covers = append(covers, Cover{Number: strings.ReplaceAll(match[1], "_", " "), Test: test, Name: name, Path: f.Path})
			rest = rest[len(match[1])+1:]
		}
	})
	return covers
}

var digits = regexp.MustCompile(`\d+`)

// sortKey returns a sort key by which number 2 comes before number 10.
func (c Cover) sortKey() string {
	number := digits.ReplaceAllStringFunc(c.Number, func(n string) string { return fmt.Sprintf("%06s", n) })
	return number + "\x00" + c.Path + "\x00" + c.Name
}

// WriteCoverage writes the covered numbers and their tests as a Markdown table.
func WriteCoverage(w io.Writer, files []*File) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "# Tests by number\n\nThe numbers are in the names of subtests; docs/internals/numbers.md says what they mean.\n\n| number | subtest | file |\n| --- | --- | --- |\n")
	for _, c := range Covers(files) {
		fmt.Fprintf(out, "| %s | %s | %s |\n", c.Number, strings.ReplaceAll(c.Name, "|", `\|`), c.Path)
	}
	return out.Flush()
}
