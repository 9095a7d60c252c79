"""One function a verb, by what people do with them; `chipwise.api` has them all."""
