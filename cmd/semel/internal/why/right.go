package why

import "errors"

// LacksRight reports whether an error is that the role may not read something: then the rest
// is told all the same.
func LacksRight(err error) bool {
	var of interface{ SQLState() string }
	return errors.As(err, &of) && of.SQLState() == "42501"
}

// note adds to what could not be read that a right is missing for it. Another error comes back.
func note(unread *[]string, what string, err error) error {
	if err == nil || !LacksRight(err) {
		return err
	}
	*unread = append(*unread, what+": "+err.Error())
	return nil
}
