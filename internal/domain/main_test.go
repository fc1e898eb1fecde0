package domain_test

import (
	"testing"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest"
)

func TestMain(m *testing.M) { acctest.Main(m) }
