"""What a router's jobs really do: by what their attempts print, against what was predicted of them."""
