from openai.types import Model


def test_models_are_listed(client):
    models = client.models.list().data
    assert [model.id for model in models] == ["maker/chat", "maker/reason"]
    assert all(isinstance(model, Model) and model.object == "model" for model in models)
    assert {model.owned_by for model in models} == {"maker"}


def test_one_model_is_retrieved_by_an_id_with_a_slash(client):
    model = client.models.retrieve("maker/chat")
    assert (model.id, model.created) == ("maker/chat", 1767225600)
