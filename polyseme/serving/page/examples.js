/**
 * Examples: one word each in a few sentences. The letter is the sense of the word, shown as a colour. They are split
 * into words as the server splits them, so that they can be shown before it responds.
 */

import { detokenise } from "./text.js";

const SENTENCES = {
  put: [
    ["a", "I put my books in the bag ."],
    ["a", "She put her book in my bag yesterday ."],
    ["a", "He put the keys on the table ."],
    ["b", "They put off the meeting until Friday ."],
    ["b", "We had to put off our wedding until spring ."],
    ["b", "They put off the trip because of the rain ."],
  ],
  Paris: [
    ["a", "We flew to Paris for the weekend ."],
    ["a", "She moved to Paris in May ."],
    ["a", "He lives in Paris with his sister ."],
    ["b", "Paris Hilton was seen at the party ."],
    ["b", "Last night Paris Hilton sang two songs ."],
    ["b", "Paris Hilton wore a pink dress ."],
  ],
  bank: [
    ["a", "We walked along the bank of the river until dark ."],
    ["a", "Willows grow on the bank of the canal ."],
    ["a", "The boat drifted to the far bank of the stream ."],
    ["b", "The bank refused to give him a loan ."],
    ["b", "Her bank lent them the money for the house ."],
    ["b", "My bank charges a fee for every cheque ."],
  ],
  play: [
    ["a", "The boys play in the yard after lunch ."],
    ["a", "They play football every Sunday ."],
    ["b", "She learned to play the flute at school ."],
    ["b", "I play the guitar in a band ."],
    ["c", "He wrote a play about the war ."],
    ["c", "It is a play about love and money ."],
  ],
  stick: [
    ["a", "The dog came back with a stick in its mouth ."],
    ["a", "He walked with a stick after the accident ."],
    ["a", "She drew a circle in the sand with a stick ."],
    ["b", "We should stick to the plan ."],
    ["b", "Please stick to the rules ."],
    ["b", "I will stick to my opinion ."],
  ],
  spring: [
    ["a", "They will marry in the spring of next year ."],
    ["a", "We planted the tree in the spring of that year ."],
    ["b", "A small spring feeds the lake ."],
    ["b", "The spring rises at the foot of the hill ."],
    ["c", "The cat was ready to spring at the bird ."],
    ["c", "He saw the dog spring at him ."],
  ],
};

/** The words of the examples, in order. */
export const EXAMPLES = Object.keys(SENTENCES);

/** The example that is shown without a link. */
export const FIRST = "bank";

/** @returns {import("./state.js").Sentence[]} */
export function exampleSentences(word) {
  return SENTENCES[word].map(([sense, line]) => {
    const words = line.split(" ");
    return { text: detokenise(words), sense, position: words.indexOf(word) };
  });
}

/** @returns {Map<string, string[]>} the words of all example sentences, by text. */
export function exampleWords() {
  const lines = Object.values(SENTENCES).flat().map(([, line]) => line.split(" "));
  return new Map(lines.map((words) => [detokenise(words), words]));
}
