/** API client: requests to the server with retries and a cache, and errors as one sentence for people. */

const CACHE_SIZE = 300; // responses
const TRIES = 4;
const LONGEST_WAIT = 5; // seconds before a retry
const KEY = "polyseme-key";
const cache = new Map();

/** An error with a message for the person at the page. */
export class PageError extends Error {
  /** @param {string} message @param {number} [status] the HTTP status; 0 if there was no response */
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }

  /** Whether the request was wrong, rather than the server in trouble. */
  get refused() {
    return this.status === 413 || this.status === 422;
  }
}

/** Sends this key with all later requests; it is kept until the tab is closed. */
export function useKey(key) {
  sessionStorage.setItem(KEY, key);
}

/**
 * The JSON of a response, from the cache if it was requested before.
 *
 * @param {string} path as "v1/compare"
 * @param {object} [body] of a POST request; without one it is a GET
 * @param {AbortSignal} [signal]
 */
export async function fetchCached(path, body, signal) {
  signal?.throwIfAborted();
  const name = path + JSON.stringify(body ?? null);
  if (!cache.has(name)) cache.set(name, await fetchJson(path, body, signal));
  if (cache.size > CACHE_SIZE) cache.delete(cache.keys().next().value);
  return cache.get(name);
}

/** The JSON of a response, not cached. */
export async function fetchJson(path, body, signal) {
  const response = await send(path, body, signal);
  const json = await response.json().catch(() => signal?.throwIfAborted() ?? null);
  if (!response.ok) throw errorOf(response, json);
  if (json === null) throw new PageError("The server's response could not be read.");
  return json;
}

async function send(path, body, signal) {
  for (let left = TRIES; ; left--) {
    const response = await fetch(path, { ...request(body), signal }).catch((error) => {
      throw error.name === "AbortError" ? error : new PageError("The server does not respond. Is it still running?");
    });
    if ((response.status !== 429 && response.status !== 503) || left <= 1) return response;
    await wait(Math.min(Number(response.headers.get("Retry-After")) || 1, LONGEST_WAIT), signal);
  }
}

function request(body) {
  const key = sessionStorage.getItem(KEY);
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  if (body === undefined) return { headers };
  return { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

function wait(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

function errorOf(response, json) {
  const { status } = response;
  if (status === 401) return new PageError("This server requires a key.", status);
  if (status === 429 || status === 503) return new PageError("The server is busy. Try again in a moment.", status);
  const message = json?.error?.message;
  return new PageError(message ? asSentence(message) : `The server could not answer (${status}).`, status);
}

function asSentence(message) {
  const start = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
