variable "project" {
  type        = string
  description = "The project's ID."
}

variable "name" {
  type        = string
  description = "What the pool is called."
}

variable "cluster" {
  type        = string
  description = "The cluster."
}

variable "region" {
  type        = string
  description = "Where the cluster lies."
}

variable "zone" {
  type        = string
  description = "The zone of the machines."
}

variable "node_account" {
  type        = string
  description = "The nodes' service account."
}

variable "machine_type" {
  type        = string
  description = "The machine type, such as ct6e-standard-4t."

  validation {
    condition     = can(regex("^(ct4p|ct5lp|ct5p|ct6e|tpu7x)-", var.machine_type))
    error_message = "A machine type with TPUs."
  }
}

variable "topology" {
  type        = string
  description = "The shape of each slice, such as 4x4."

  validation {
    condition     = can(regex("^[1-9][0-9]*(x[1-9][0-9]*){1,2}$", var.topology))
    error_message = "A shape such as 4x4 or 2x2x2."
  }
}

variable "slices" {
  type        = number
  description = "Slices, at most."

  validation {
    condition     = var.slices >= 1 && floor(var.slices) == var.slices
    error_message = "A whole number of at least 1."
  }
}

variable "min_slices" {
  type        = number
  description = "Slices that are always up."

  validation {
    condition     = var.min_slices >= 0 && floor(var.min_slices) == var.min_slices
    error_message = "A whole number."
  }
}

variable "hosts_per_slice" {
  type        = number
  description = "Machines of each slice."
}

variable "workload_policy" {
  type        = bool
  description = "Whether a slice's shape is a workload policy (from TPU7x on)."
}

variable "term" {
  type        = string
  description = "ondemand, spot, reserved or flex-start."

  validation {
    condition     = contains(["ondemand", "spot", "reserved", "flex-start"], var.term)
    error_message = "One of ondemand, spot, reserved, flex-start."
  }
}

variable "reservation" {
  type        = string
  description = "The reservation that a reserved pool is of."
  default     = null
}

variable "max_run_duration" {
  type        = string
  description = "How long a machine of flex-start may stay, in seconds with an s."
  default     = "604800s"
}

variable "labels" {
  type        = map(string)
  description = "Labels for costs."
}
