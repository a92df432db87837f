// Package policy reads Semel's policy file.
package policy
