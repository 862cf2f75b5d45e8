/** Words and their places in the text. The server's words are always substrings of the text, in order. */

/** @returns {[number, number][]} start and end of each word. */
export function locate(text, words) {
  let from = 0;
  return words.map((word) => {
    const start = text.indexOf(word, from);
    if (start < 0) return [from, from];
    from = start + word.length;
    return [start, from];
  });
}

/** The context of a word: [before, the word, after], a few words each. */
export function contextOf(text, words, position, reach) {
  const spans = locate(text, words);
  const first = Math.max(0, position - reach);
  const last = Math.min(words.length - 1, position + reach);
  const [start, end] = spans[position];
  return [text.slice(spans[first][0], start), text.slice(start, end), text.slice(end, spans[last][1])];
}

const CLOSING = /^(?:[.,;:!?%)\]}…”’]|n't$|'(?:s|re|ve|ll|d|m)$)/i;
const WIDE = /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}]$/u;

/** Detokenises words into a readable line: no space before a full stop, nor between Han characters. */
export function detokenise(words) {
  return words.reduce((line, word) => {
    const tight = !line || CLOSING.test(word) || /[([{“‘]$/.test(line) || WIDE.test(line);
    return line + (tight ? "" : " ") + word;
  }, "");
}
