"""The eleven claims that the report tests, one file each; ``listing.py`` has them in order.

A file holds the claim's wording, what it measures (or which of ``measure/`` it needs), its pass rule and its verdict:

1. ``claim_01_context``: a word's vector depends on its sentence
2. ``claim_02_tense``: the vector shows a tense that the spelling hides
3. ``claim_03_unseen_words``: no word is out of vocabulary
4. ``claim_04_syntax_and_meaning``: the first layer is for grammar, the second for meaning
5. ``claim_05_layer_mixing``: mixing all layers beats the top layer
6. ``claim_06_labelled_data``: tasks need less labelled text (sample efficiency)
7. ``claim_07_fine_tuning``: fine-tuning beats freezing
8. ``claim_08_directions``: both reading directions matter
9. ``claim_09_documents``: carrying state through a document beats single sentences
10. ``claim_10_transformer_layers``: a transformer's last layer is not its best
11. ``claim_11_task_gains``: tasks gain about three points
"""
