package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// The tag "reload" of each field of [Config] says how a reload treats a change:
//
//	apply         it takes effect
//	restart NAME  it is refused; NAME is the setting in messages
//	secret        it is refused, in a message without the values
//	fields        the fields of the struct have tags of their own
const reloadTag = "reload"

// CheckReload returns an error if a running host with configuration c cannot
// reload next, because a setting differs that only a new host can apply.
func (c *Config) CheckReload(next *Config) error {
	return checkReload(reflect.ValueOf(c).Elem(), reflect.ValueOf(next).Elem())
}

func checkReload(old, next reflect.Value) error {
	for i := range old.NumField() {
		treatment, name, _ := strings.Cut(old.Type().Field(i).Tag.Get(reloadTag), " ")
		a, b := old.Field(i), next.Field(i)
		switch treatment {
		case "fields":
			if err := checkReload(a, b); err != nil {
				return err
			}
		case "restart":
			if !reflect.DeepEqual(a.Interface(), b.Interface()) {
				return fmt.Errorf("%s cannot be changed by a reload: it is %q and would be %q; stop the host and start it again",
					name, a.Interface(), b.Interface())
			}
		case "secret":
			if !reflect.DeepEqual(a.Interface(), b.Interface()) {
				return errors.New("a value of env(), file() or a secret block has changed, and a reload cannot apply it; stop the host and start it again")
			}
		}
	}
	return nil
}
