resource "terraform_data" "greeting" {
  input = "Hello from a custom resource"
}

output "greeting" {
  value = terraform_data.greeting.output
}
