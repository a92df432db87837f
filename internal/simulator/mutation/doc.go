// Package mutation changes functions of this module one at a time and runs the result, without changing the source
// tree.
//
// A Change replaces a piece of one function. Plant writes files that contain every changed function unchanged and
// once for each change, under another name. An overlay passes these files to the compiler. So one build contains
// all changes, and an environment variable switches one of them on.
//
// Changes come from two sources: an Edit finds one place in a named function by the names that the code uses, and
// Mutants lists all small mistakes in the functions of some files.
package mutation
