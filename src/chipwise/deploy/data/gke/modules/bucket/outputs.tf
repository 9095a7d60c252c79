output "url" {
  value       = google_storage_bucket.this.url
  description = "The bucket, as programs name it."
}
