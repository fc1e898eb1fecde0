package change

import (
	"strings"
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// expressType has every way in which a schema may treat a value: who may set
// it, and what it is made of.
var expressType = tree.ObjectOf(
	&tree.Attribute{Name: "name", Type: tree.StringType, Required: true},
	&tree.Attribute{Name: "note", Type: tree.StringType, Optional: true},
	&tree.Attribute{Name: "size", Type: tree.NumberType, Optional: true, Computed: true},
	&tree.Attribute{Name: "id", Type: tree.StringType, Computed: true},
	&tree.Attribute{Name: "args", Type: tree.ListOf(tree.StringType), Optional: true, Computed: true},
	&tree.Attribute{Name: "matrix", Type: tree.ListOf(tree.ListOf(tree.NumberType)), Optional: true},
	&tree.Attribute{Name: "boot", Optional: true, Computed: true, Type: tree.ObjectOf(
		&tree.Attribute{Name: "order", Type: tree.NumberType, Optional: true, Computed: true},
		&tree.Attribute{Name: "dev", Type: tree.StringType, Optional: true},
	)},
	&tree.Attribute{Name: "fixed", Optional: true, Type: tree.ObjectOf(
		&tree.Attribute{Name: "a", Type: tree.StringType, Optional: true, Computed: true},
	)},
	&tree.Attribute{Name: "report", Computed: true, Type: tree.ListOf(tree.ObjectOf(
		&tree.Attribute{Name: "text", Type: tree.StringType, Computed: true},
	))},
	&tree.Attribute{Name: "disks", Optional: true, Computed: true, Type: tree.ListOf(tree.ObjectOf(
		&tree.Attribute{Name: "dev", Type: tree.StringType, Required: true},
		&tree.Attribute{Name: "cache", Type: tree.StringType, Optional: true, Computed: true},
		&tree.Attribute{Name: "note", Type: tree.StringType, Optional: true},
		&tree.Attribute{Name: "alias", Type: tree.StringType, Computed: true},
		&tree.Attribute{Name: "parts", Optional: true, Computed: true, Type: tree.ListOf(tree.ObjectOf(
			&tree.Attribute{Name: "label", Type: tree.StringType, Optional: true, Computed: true},
		))},
	))},
	&tree.Attribute{Name: "leases", Optional: true, Type: tree.ListOf(tree.ObjectOf(
		&tree.Attribute{Name: "key", Type: tree.StringType, Optional: true, Computed: true},
	))},
)

type expressCase struct {
	prior, config, planned string
	refused                string // "" if the core accepts
}

// The tests against the core's own rule run these cases too.
var expressCases = map[string]expressCase{
	"as configured":                         {`{'name':'a'}`, `{'name':'b'}`, `{'name':'b'}`, ""},
	"as it was":                             {`{'name':'a'}`, `{'name':'b'}`, `{'name':'a'}`, ""},
	"a third value":                         {`{'name':'a'}`, `{'name':'b'}`, `{'name':'c'}`, "name is planned with a value that is neither the configuration's nor the prior one"},
	"another value at creation":             {``, `{'name':'b'}`, `{'name':'c'}`, "name is planned with another value than the configuration's"},
	"another value, none before":            {`{'name':'a'}`, `{'name':'a','note':'n'}`, `{'name':'a','note':'m'}`, "note is planned with another value than the configuration's"},
	"unknown in place of a value":           {`{'name':'a'}`, `{'name':'b'}`, `{'name':'?'}`, "name is planned to be unknown, though the configuration has a value"},
	"unknown in both":                       {`{'name':'a'}`, `{'name':'?'}`, `{'name':'?'}`, ""},
	"a value in place of unknown":           {`{'name':'a'}`, `{'name':'?'}`, `{'name':'b'}`, "name is planned with a value that is neither the configuration's nor the prior one"},
	"held though the value is unknown":      {`{'name':'a'}`, `{'name':'?'}`, `{'name':'a'}`, ""},
	"held where the host has null":          {`{'name':'a'}`, `{'name':'a','note':'n'}`, `{'name':'a'}`, "note is planned to be absent, though the configuration has it"},
	"absent though it was":                  {`{'name':'a'}`, `{'name':'a','size':1}`, `{'name':'a'}`, "size is planned to be absent, though the configuration has it"},
	"kept, not configured, computed":        {`{'size':1}`, `{}`, `{'size':1}`, ""},
	"changed, not configured, computed":     {`{'size':1}`, `{}`, `{'size':2}`, ""},
	"unset, not configured":                 {`{'size':1,'note':'n'}`, `{}`, `{}`, ""},
	"kept, not configured, not computed":    {`{'note':'n'}`, `{}`, `{'note':'n'}`, "note is planned, though the configuration does not have it and nothing else may set it"},
	"unknown, not configured, not computed": {`{'note':'n'}`, `{}`, `{'note':'?'}`, "note is planned, though the configuration does not have it and nothing else may set it"},
	"computed alone, any value":             {`{'id':'a'}`, `{'id':'b'}`, `{'id':'c'}`, ""},
	"computed alone, none":                  {`{'id':'a'}`, `{'id':'b'}`, `{}`, ""},
	"the same number":                       {`{'size':1}`, `{'size':2.50}`, `{'size':2.5}`, ""},

	"list of scalars held":            {`{'args':['a']}`, `{'args':['a','b']}`, `{'args':['a']}`, ""},
	"list of scalars permuted":        {`{'args':['a','b']}`, `{'args':['b','a']}`, `{'args':['a','b']}`, ""},
	"list of scalars, element held":   {`{'args':['a','x']}`, `{'args':['b','y']}`, `{'args':['b','x']}`, "args is planned with a value that is neither the configuration's nor the prior one"},
	"list of scalars, unknown part":   {`{'args':['a']}`, `{'args':['?']}`, `{'args':['?']}`, ""},
	"list of scalars, part decided":   {`{'args':['a']}`, `{'args':['?','b']}`, `{'args':['a','b']}`, "args is planned with a value that is neither the configuration's nor the prior one"},
	"list of scalars, null element":   {``, `{'args':[null,'a']}`, `{'args':[null,'a']}`, ""},
	"list of scalars emptied":         {`{'args':['a']}`, `{'args':[]}`, `{'args':[]}`, ""},
	"list of scalars, null for empty": {`{'args':['a']}`, `{'args':[]}`, `{}`, "args is planned to be absent, though the configuration has it"},
	"list of scalars, empty for null": {`{'matrix':[[1]]}`, `{}`, `{'matrix':[]}`, "matrix is planned, though the configuration does not have it and nothing else may set it"},
	"list of lists":                   {`{'matrix':[[1],[2]]}`, `{'matrix':[[1],[3]]}`, `{'matrix':[[1],[2]]}`, ""},

	"object, one attribute held":        {`{'boot':{'order':1}}`, `{'boot':{'order':2,'dev':'d'}}`, `{'boot':{'order':1,'dev':'d'}}`, ""},
	"object, one attribute kept":        {`{'boot':{'order':1}}`, `{'boot':{'dev':'d'}}`, `{'boot':{'order':1,'dev':'d'}}`, ""},
	"object, one attribute not allowed": {`{'boot':{'dev':'d'}}`, `{'boot':{'order':2}}`, `{'boot':{'order':2,'dev':'d'}}`, "boot.dev is planned, though the configuration does not have it and nothing else may set it"},
	"object kept, not configured":       {`{'boot':{'dev':'d'}}`, `{}`, `{'boot':{'dev':'d'}}`, ""},
	"object dropped":                    {`{'boot':{'dev':'d'}}`, `{'boot':{'dev':'d'}}`, `{}`, "boot is planned to be absent, though the configuration has it"},
	"object unknown":                    {`{'boot':{'dev':'d'}}`, `{'boot':{'dev':'d'}}`, `{'boot':'?'}`, "boot is planned to be unknown, though the configuration has a value"},
	"object of nulls for null":          {``, `{}`, `{'fixed':{}}`, "fixed is planned, though the configuration does not have it and nothing else may set it"},
	"object of nulls, something added":  {``, `{'boot':{}}`, `{'boot':{'order':1}}`, ""},
	"object unknown, known in the plan": {``, `{'boot':'?'}`, `{'boot':{'order':1}}`, "boot.dev is planned to be absent, though the configuration has it; boot.order is planned with another value than the configuration's"},
	"object unknown, held":              {`{'boot':{'order':1}}`, `{'boot':'?'}`, `{'boot':{'order':1}}`, ""},
	"object unknown, its parts too":     {``, `{'boot':'?'}`, `{'boot':{'order':'?','dev':'?'}}`, ""},

	"elements held in place":             {`{'disks':[{'dev':'a','cache':'x'},{'dev':'b'}]}`, `{'disks':[{'dev':'a','cache':'y'},{'dev':'b','note':'n'}]}`, `{'disks':[{'dev':'a','cache':'x'},{'dev':'b','note':'n'}]}`, ""},
	"list held, longer":                  {`{'disks':[{'dev':'a'},{'dev':'b'}]}`, `{'disks':[{'dev':'b'}]}`, `{'disks':[{'dev':'a'},{'dev':'b'}]}`, ""},
	"list held, shorter":                 {`{'disks':[{'dev':'a'}]}`, `{'disks':[{'dev':'b'},{'dev':'a'}]}`, `{'disks':[{'dev':'a'}]}`, ""},
	"list held, empty":                   {`{'disks':[]}`, `{'disks':[{'dev':'b'}]}`, `{'disks':[]}`, ""},
	"list held, permuted":                {`{'disks':[{'dev':'a'},{'dev':'b'}]}`, `{'disks':[{'dev':'b'},{'dev':'a'}]}`, `{'disks':[{'dev':'a'},{'dev':'b'}]}`, ""},
	"list held, beside another intent":   {`{'name':'a','disks':[{'dev':'a'}]}`, `{'name':'b','disks':[]}`, `{'name':'b','disks':[{'dev':'a'}]}`, ""},
	"list longer than both":              {`{'disks':[{'dev':'a'}]}`, `{'disks':[{'dev':'a'},{'dev':'b'}]}`, `{'disks':[{'dev':'a'},{'dev':'b'},{'dev':'c'}]}`, "disks is planned as a list of 3, neither the configuration's list of 2 nor the prior one"},
	"list shorter than both":             {`{'disks':[{'dev':'a'},{'dev':'b'},{'dev':'c'}]}`, `{'disks':[{'dev':'a'},{'dev':'b'}]}`, `{'disks':[{'dev':'a'}]}`, "disks is planned as a list of 1, neither the configuration's list of 2 nor the prior one"},
	"list longer, element held at end":   {`{'disks':[{'dev':'a','cache':'x'}]}`, `{'disks':[{'dev':'c'},{'dev':'a','cache':'y'}]}`, `{'disks':[{'dev':'c'},{'dev':'a','cache':'x'}]}`, "disks[1].cache is planned with another value than the configuration's"},
	"list longer, element held in place": {`{'disks':[{'dev':'a','cache':'x'}]}`, `{'disks':[{'dev':'a','cache':'y'},{'dev':'c'}]}`, `{'disks':[{'dev':'a','cache':'x'},{'dev':'c'}]}`, ""},
	"list shorter, element moved up":     {`{'disks':[{'dev':'a'},{'dev':'b','cache':'x'}]}`, `{'disks':[{'dev':'b','cache':'y'}]}`, `{'disks':[{'dev':'b','cache':'x'}]}`, "disks[0].cache is planned with another value than the configuration's"},
	"list permuted, element held":        {`{'disks':[{'dev':'a','cache':'x'},{'dev':'b','cache':'z'}]}`, `{'disks':[{'dev':'b'},{'dev':'a','cache':'y'}]}`, `{'disks':[{'dev':'b'},{'dev':'a','cache':'x'}]}`, "disks[1].cache is planned with a value that is neither the configuration's nor the prior one"},
	"list permuted, the other's value":   {`{'disks':[{'dev':'a','cache':'x'},{'dev':'b','cache':'z'}]}`, `{'disks':[{'dev':'b'},{'dev':'a','cache':'y'}]}`, `{'disks':[{'dev':'b'},{'dev':'a','cache':'z'}]}`, ""},
	"list, computed part of new element": {`{}`, `{'disks':[{'dev':'a'}]}`, `{'disks':[{'dev':'a','alias':'?','cache':'?'}]}`, ""},
	"list emptied":                       {`{'disks':[{'dev':'a'}]}`, `{'disks':[]}`, `{'disks':[]}`, ""},
	"list null for empty":                {`{'disks':[{'dev':'a'}]}`, `{'disks':[]}`, `{}`, "disks is planned to be absent, though the configuration has it"},
	"list empty for null, computed":      {`{'disks':[{'dev':'a'}]}`, `{}`, `{'disks':[]}`, ""},
	"list empty for null, not computed":  {`{'leases':[{'key':'a'}]}`, `{}`, `{'leases':[]}`, "leases is planned, though the configuration does not have it and nothing else may set it"},
	"list shortened, not configured":     {`{'disks':[{'dev':'a'},{'dev':'b'}]}`, `{}`, `{'disks':[{'dev':'b'}]}`, ""},
	"list unknown, known in the plan":    {`{'disks':[{'dev':'a'}]}`, `{'disks':'?'}`, `{'disks':[{'dev':'b'}]}`, "disks is planned as a list of 1, though the configuration's list is not known yet"},
	"list unknown, held":                 {`{'disks':[{'dev':'a'}]}`, `{'disks':'?'}`, `{'disks':[{'dev':'a'}]}`, ""},
	"list unknown in the plan":           {``, `{'disks':[{'dev':'a'}]}`, `{'disks':'?'}`, "disks is planned to be unknown, though the configuration has a value"},
	"element unknown in both":            {``, `{'disks':['?',{'dev':'a'}]}`, `{'disks':['?',{'dev':'a','alias':'?'}]}`, ""},
	"element unknown in the plan":        {``, `{'disks':[{'dev':'a'}]}`, `{'disks':['?']}`, "disks[0].dev is planned to be unknown, though the configuration has a value; disks[0].note is planned, though the configuration does not have it and nothing else may set it"},
	"element unknown, of computed parts": {``, `{'leases':[{}]}`, `{'leases':['?']}`, ""},
	"element null in both":               {``, `{'disks':[null]}`, `{'disks':[null]}`, ""},
	"element null in the plan":           {``, `{'disks':[{'dev':'a'}]}`, `{'disks':[null]}`, "disks[0] is null, and a list of objects that is not planned as a whole cannot hold null"},
	"element null beside a change":       {``, `{'disks':[null,{'dev':'a'}]}`, `{'disks':[null,{'dev':'a','alias':'?'}]}`, "disks[0] is null, and a list of objects that is not planned as a whole cannot hold null"},
	"nested list held in its element":    {`{'disks':[{'dev':'a','parts':[{'label':'l'}]}]}`, `{'disks':[{'dev':'a','note':'n','parts':[]}]}`, `{'disks':[{'dev':'a','note':'n','parts':[{'label':'l'}]}]}`, ""},
	"nested list held elsewhere":         {`{'disks':[{'dev':'a','parts':[{'label':'l'}]}]}`, `{'disks':[{'dev':'b'},{'dev':'a','parts':[]}]}`, `{'disks':[{'dev':'b'},{'dev':'a','parts':[{'label':'l'}]}]}`, "disks[1].parts is planned as a list of 1, neither the configuration's list of 0 nor the prior one"},
	"computed list, any value":           {`{'report':[{'text':'a'}]}`, `{}`, `{'report':[{'text':'?'},{'text':'b'}]}`, ""},

	"destroyed":                {`{'name':'a'}`, ``, ``, ""},
	"destroyed, but kept":      {`{'name':'a'}`, ``, `{'name':'a'}`, "the object is planned to exist, though the configuration does not have it"},
	"configured, but not made": {``, `{'name':'a'}`, ``, "the object is planned to be absent, though the configuration has it"},
}

func refusals(list []Inexpressible) string {
	var out []string
	for _, i := range list {
		out = append(out, i.String())
	}
	return strings.Join(out, "; ")
}

func TestExpressible(t *testing.T) {
	for name, c := range expressCases {
		t.Run(name, func(t *testing.T) {
			got := refusals(Expressible(expressType, obj(t, c.prior), obj(t, c.config), obj(t, c.planned)))
			if got != c.refused {
				t.Errorf("refused %q\nwant    %q", got, c.refused)
			}
		})
	}
}
