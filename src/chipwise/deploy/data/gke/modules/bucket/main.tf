# Checkpoints and data, in the region of the chips: reading across regions is slow and is paid for.
resource "google_storage_bucket" "this" {
  project       = var.project
  name          = "${var.project}-${var.name}"
  location      = var.region
  labels        = var.labels
  force_destroy = false

  # Who may read is said in one place, and never everybody.
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  # A checkpoint written over or deleted can be had back for a week.
  soft_delete_policy {
    retention_duration_seconds = 604800
  }
}

data "google_project" "this" {
  project_id = var.project
}

# The pods' own account, by workload identity: no key file, and nothing of the project but this bucket.
resource "google_storage_bucket_iam_member" "jobs" {
  bucket = google_storage_bucket.this.name
  role   = "roles/storage.objectUser"
  member = "principal://iam.googleapis.com/projects/${data.google_project.this.number}/locations/global/workloadIdentityPools/${var.project}.svc.id.goog/subject/ns/${var.namespace}/sa/${var.account}"
}
