variable "project" {
  type        = string
  description = "The project's ID."
}

variable "name" {
  type        = string
  description = "What the bucket is called, after the project's ID."
}

variable "region" {
  type        = string
  description = "Where it lies."
}

variable "namespace" {
  type        = string
  description = "The namespace whose account reads and writes it."
}

variable "account" {
  type        = string
  description = "The service account of Kubernetes that reads and writes it."
}

variable "labels" {
  type        = map(string)
  description = "Labels for costs."
}
