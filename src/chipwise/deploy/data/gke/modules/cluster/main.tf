resource "google_container_cluster" "this" {
  project    = var.project
  name       = var.name
  location   = var.region
  network    = var.network
  subnetwork = var.subnetwork

  # Pools are resources of their own, so that a change of one never replaces the cluster.
  remove_default_node_pool = true
  initial_node_count       = 1
  deletion_protection      = var.deletion_protection
  resource_labels          = var.labels

  # NetworkPolicies are enforced, and multi-host slices find their hosts by DNS.
  datapath_provider = "ADVANCED_DATAPATH"

  release_channel {
    channel = "REGULAR"
  }

  ip_allocation_policy {
    cluster_secondary_range_name  = "pods"
    services_secondary_range_name = "services"
  }

  # Nodes have no public addresses: an accelerator node that the internet reaches is the first to be mined on.
  private_cluster_config {
    enable_private_nodes    = true
    enable_private_endpoint = false
    master_ipv4_cidr_block  = "172.16.0.0/28"
  }

  # Only the networks named reach the API server; none named, none does but Google's own.
  master_authorized_networks_config {
    gcp_public_cidrs_access_enabled = false

    dynamic "cidr_blocks" {
      for_each = var.authorized_networks
      content {
        cidr_block   = cidr_blocks.value
        display_name = cidr_blocks.key
      }
    }
  }

  # Pods act as service accounts of their own, not as the node's: no key file lies in a Secret.
  workload_identity_config {
    workload_pool = "${var.project}.svc.id.goog"
  }

  # Old ways of signing in stay off.
  master_auth {
    client_certificate_config {
      issue_client_certificate = false
    }
  }

  # Costs by namespace and label in the billing export.
  cost_management_config {
    enabled = true
  }

  addons_config {
    gcs_fuse_csi_driver_config {
      enabled = true
    }
  }

  monitoring_config {
    enable_components = ["SYSTEM_COMPONENTS", "JOBSET", "POD", "DEPLOYMENT", "DCGM"]

    managed_prometheus {
      enabled = true
    }
  }
}

# The node's own account: it writes logs and metrics and pulls images. Google's default account may edit the project.
resource "google_service_account" "nodes" {
  project      = var.project
  account_id   = var.node_account
  display_name = "Nodes of ${var.name}"
}

resource "google_project_iam_member" "nodes" {
  for_each = toset([
    "roles/container.defaultNodeServiceAccount",
    "roles/artifactregistry.reader",
  ])

  project = var.project
  role    = each.value
  member  = google_service_account.nodes.member
}

# Machines without accelerators for what runs beside the jobs: Kueue, JobSet, DNS. Chips are not paid for that.
resource "google_container_node_pool" "system" {
  project  = var.project
  name     = "system"
  cluster  = google_container_cluster.this.id
  location = var.region

  autoscaling {
    total_min_node_count = 1
    total_max_node_count = 3
    location_policy      = "BALANCED"
  }

  node_config {
    machine_type    = "e2-standard-4"
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
    labels          = var.labels

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
}
