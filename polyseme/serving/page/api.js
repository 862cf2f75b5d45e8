/** The server's answers, and what went wrong, in one calm sentence. */

const KEPT = 300;
const TRIES = 4;
const LONGEST_WAIT = 5; // seconds
const KEY = "polyseme-key";
const answers = new Map();

/** What the person at the page is told. */
export class Problem extends Error {
  /** @param {string} message @param {number} [status] of HTTP, where the server answered at all */
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }

  /** Whether it is about what was sent, rather than about the server. */
  get refused() {
    return this.status === 413 || this.status === 422;
  }
}

/** From now on requests carry this key; it is forgotten with the tab. */
export function useKey(key) {
  sessionStorage.setItem(KEY, key);
}

/**
 * An answer, kept for the next time.
 *
 * @param {string} path as "v1/compare"
 * @param {object} [body] without one it is a GET
 * @param {AbortSignal} [signal]
 */
export async function ask(path, body, signal) {
  signal?.throwIfAborted();
  const name = path + JSON.stringify(body ?? null);
  if (!answers.has(name)) answers.set(name, await askAnew(path, body, signal));
  if (answers.size > KEPT) answers.delete(answers.keys().next().value);
  return answers.get(name);
}

/** An answer that is not kept. */
export async function askAnew(path, body, signal) {
  const response = await send(path, body, signal);
  const answer = await response.json().catch(() => signal?.throwIfAborted() ?? null);
  if (!response.ok) throw problemOf(response, answer);
  if (answer === null) throw new Problem("The server's answer could not be read.");
  return answer;
}

async function send(path, body, signal) {
  for (let left = TRIES; ; left--) {
    const response = await fetch(path, { ...request(body), signal }).catch((error) => {
      throw error.name === "AbortError" ? error : new Problem("The server does not answer. Is it still running?");
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

function problemOf(response, answer) {
  const { status } = response;
  if (status === 401) return new Problem("This server answers only with its key.", status);
  if (status === 429 || status === 503) return new Problem("The server is busy. Try again in a moment.", status);
  const message = answer?.error?.message;
  return new Problem(message ? sentenceOf(message) : `The server could not answer (${status}).`, status);
}

function sentenceOf(message) {
  const start = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
