locals {
  multi_host = var.hosts_per_slice > 1
  node_pools = local.multi_host ? var.slices : 1
  nodes      = local.multi_host ? var.hosts_per_slice : var.slices
  autoscaled = var.min_slices < var.slices
  # From TPU7x on a slice's shape is a policy of its own, which its node pool names.
  policy = local.multi_host && var.workload_policy
}

resource "google_compute_resource_policy" "slice" {
  count = local.policy ? 1 : 0

  project = var.project
  name    = var.name
  region  = var.region

  workload_policy {
    type                 = "HIGH_THROUGHPUT"
    accelerator_topology = var.topology
  }
}

# A multi-host node pool is one slice and starts and ends whole; slices that fit on one host share one node pool.
resource "google_container_node_pool" "slice" {
  count = local.node_pools

  project        = var.project
  name           = local.multi_host ? "${var.name}-${count.index}" : var.name
  cluster        = var.cluster
  location       = var.region
  node_locations = [var.zone]

  node_count         = local.autoscaled ? null : local.nodes
  initial_node_count = local.autoscaled ? 0 : null

  dynamic "autoscaling" {
    for_each = local.autoscaled ? [1] : []
    content {
      total_min_node_count = local.multi_host ? 0 : var.min_slices
      total_max_node_count = local.nodes
      location_policy      = "ANY"
    }
  }

  dynamic "placement_policy" {
    for_each = local.multi_host ? [1] : []
    content {
      type         = "COMPACT"
      tpu_topology = local.policy ? null : var.topology
      policy_name  = local.policy ? google_compute_resource_policy.slice[0].name : null
    }
  }

  dynamic "queued_provisioning" {
    for_each = var.term == "flex-start" ? [1] : []
    content {
      enabled = true
    }
  }

  management {
    auto_upgrade = true
    # A machine of flex-start is not given again: a repair would end the job and get nothing for it.
    auto_repair = var.term != "flex-start"
  }

  node_config {
    machine_type     = var.machine_type
    service_account  = var.node_account
    oauth_scopes     = ["https://www.googleapis.com/auth/cloud-platform"]
    labels           = merge(var.labels, { "chipwise-pool" = var.name })
    resource_labels  = var.labels
    spot             = var.term == "spot"
    flex_start       = var.term == "flex-start" ? true : null
    max_run_duration = var.term == "flex-start" ? var.max_run_duration : null

    dynamic "reservation_affinity" {
      for_each = var.term == "reserved" ? [1] : []
      content {
        consume_reservation_type = "SPECIFIC_RESERVATION"
        key                      = "compute.googleapis.com/reservation-name"
        values                   = [var.reservation]
      }
    }

    # Without a reservation named, none that is free by chance is used up.
    dynamic "reservation_affinity" {
      for_each = var.term == "flex-start" ? [1] : []
      content {
        consume_reservation_type = "NO_RESERVATION"
      }
    }

    # A node whose boot chain was changed does not start.
    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }

    # Pods see the account that is theirs, never the node's token.
    workload_metadata_config {
      mode = "GKE_METADATA"
    }
  }

  lifecycle {
    # How many nodes a pool began with says nothing later, and a change of it would replace the pool.
    ignore_changes = [initial_node_count]
  }
}
