# The smallest module that shows everything: resources that need no cloud, a variable, outputs, and
# one of them sensitive. It runs under OpenTofu and Terraform alike and needs no provider download:
# terraform_data is built into both.

terraform {
  required_version = ">= 1.6"
}

variable "name" {
  description = "Who is greeted."
  type        = string
  default     = "world"
}

variable "guests" {
  description = "How many places are laid."
  type        = number
  default     = 2

  validation {
    condition     = var.guests >= 0 && var.guests <= 20
    error_message = "The table has 20 places."
  }
}

resource "terraform_data" "greeting" {
  input = "Hello, ${var.name}!"
}

resource "terraform_data" "place" {
  count = var.guests
  input = "place ${count.index + 1}, facing ${terraform_data.greeting.output}"
}

output "greeting" {
  value = terraform_data.greeting.output
}

output "places" {
  value = terraform_data.place[*].output
}

output "door_code" {
  description = "Sensitive: left out wherever outputs are shown, unless asked for."
  value       = "code-${sha256(terraform_data.greeting.id)}"
  sensitive   = true
}
