// Package house contains tests of this repository's architecture and style. Each test gives the
// reason for its rule.
package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
)

// File is a Go source file of the repository.
type File struct {
	// Path is relative to the root of the repository, with slashes.
	Path  string
	Set   *token.FileSet
	Tree  *ast.File
	Lines int
}

// Test reports whether the file is a test.
func (f *File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Package returns the folder of the file. For a file in the root of the repository, the result is ".".
func (f *File) Package() string { return filepath.ToSlash(filepath.Dir(f.Path)) }

// Line returns the number of the line on which a node begins.
func (f *File) Line(n ast.Node) int { return f.Set.Position(n.Pos()).Line }

// Files parses every Go file below root, in all modules.
func Files(root string) ([]*File, error) {
	var files []*File
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		files = append(files, &File{Path: filepath.ToSlash(relative), Set: set, Tree: tree, Lines: set.Position(tree.FileEnd).Line})
		return nil
	})
	return files, err
}
