package command

import "github.com/spf13/pflag"

// explainedBy is the key of an annotation of flags. The value of the annotation is the command whose help
// explains the flag.
const explainedBy = "semel_explained_by"

// OnlyName makes a command's help print only the flag's name, and the command whose help explains the flag.
func OnlyName(f *pflag.Flag, command string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[explainedBy] = []string{command}
}

// ExplainedBy returns the name of the command whose help explains the flag, as OnlyName has recorded it. ExplainedBy
// returns "" if the help of the flag's own command explains the flag.
func ExplainedBy(f *pflag.Flag) string {
	if by := f.Annotations[explainedBy]; len(by) > 0 {
		return by[0]
	}
	return ""
}
