"""Raw text to token shards on disk, in parallel and in bounded memory."""
